#include "acceptance/residual.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ds4/errors.h"
#include "sampling/softmax.h"

namespace ds4::speculation {

namespace {

constexpr double kNoMass = 1e-8;
constexpr size_t kLanes = 16;

/// max(x, 0) without a comparison, which vectorises; exact, and NaN for a NaN or an infinity below.
double positive(double x) { return 0.5 * (x + std::abs(x)); }

double checked(double mass) {
    if (std::isfinite(mass)) return std::max(mass, 0.0);
    throw RequestError(
        "accept: the residual of p and q has no finite mass, wanted q of finite numbers; the drafter is damaged");
}

double dense_mass(std::span<const float> p, double scale, std::span<const float> q) {
    std::array<double, kLanes> partial{};
    const size_t whole = p.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
            partial[lane] += positive(scale * p[i + lane] - q[i + lane]);
        }
    }
    for (size_t i = whole; i < p.size(); ++i) partial[i - whole] += positive(scale * p[i] - q[i]);
    double mass = 0;
    for (const double part : partial) mass += part;
    return mass;
}

/// Returns the sum of max(scale p - q, 0) for a q that lists few tokens; only their terms differ from scale p.
double sparse_mass(std::span<const float> p, double scale, const DraftRow& draft) {
    double mass = scale * sampling::sum(p);
    for (size_t i = 0; i < draft.ids.size(); ++i) {
        const double weight = scale * p[static_cast<size_t>(draft.ids[i])];
        mass += positive(weight - draft.q[i]) - weight;
    }
    return mass;
}

/// The residual up to a factor: a listed q is scaled in place of a whole row of p.
void take_off(std::span<float> p, double scale, const DraftRow& draft) {
    const double rescale = 1 / scale;
    if (draft.ids.empty()) {
        for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<float>(positive(p[i] - rescale * draft.q[i]));
        return;
    }
    for (size_t i = 0; i < draft.ids.size(); ++i) {
        float& weight = p[static_cast<size_t>(draft.ids[i])];
        weight = static_cast<float>(positive(weight - rescale * draft.q[i]));
    }
}

}  // namespace

double residual_mass(std::span<const float> p, double scale, const DraftRow& draft) {
    return checked(draft.ids.empty() ? dense_mass(p, scale, draft.q) : sparse_mass(p, scale, draft));
}

int32_t draw_recovered(TargetRows& rows, size_t row, std::span<float> p, double scale, const DraftRow& draft,
                       Rng& rng) {
    take_off(p, scale, draft);
    if (checked(sampling::sum(p)) <= kNoMass) p = rows.distribution(row);
    return draw(p, rng.uniform());
}

}  // namespace ds4::speculation

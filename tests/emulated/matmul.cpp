// Products and the quantised rows that they read.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "agreement.h"
#include "tiles.h"

namespace emulated {
namespace {

struct Case {
    Format format;
    const char* name;
    int64_t columns;  // no whole number of what a pass takes at once, where the format allows it
    bool quantised() const { return format > Format::bf16; }
};
constexpr Case kCases[] = {
    {Format::f32, "F32", 37},    {Format::f16, "F16", 37},          {Format::bf16, "BF16", 37},
    {Format::q8_0, "Q8_0", 352}, {Format::q4_0, "Q4_0", 352},       {Format::mxfp4, "MXFP4", 352},
    {Format::q2_k, "Q2_K", 512}, {Format::q4_k, "Q4_K", 512},       {Format::q5_k, "Q5_K", 512},
    {Format::q6_k, "Q6_K", 512}, {Format::iq2_xxs, "IQ2_XXS", 512}, {Format::iq3_xxs, "IQ3_XXS", 512}};
constexpr int64_t kOutputs = 24;  // the second tile is half empty

/// Rows as a product reads them.
struct Inputs {
    int64_t count;
    size_t stride;
    std::vector<std::byte> data;

    Inputs(const Kernels& kernels, const Case& c, const std::vector<float>& x)
        : count(static_cast<int64_t>(x.size()) / c.columns),
          stride(c.quantised() ? quantised_bytes(c.columns) : c.columns * sizeof(float)),
          data(count * stride) {
        for (int64_t row = 0; row < count; row++) {
            const float* from = x.data() + row * c.columns;
            std::byte* to = data.data() + row * stride;
            c.quantised() ? kernels.quantise(from, c.columns, to) : void(std::memcpy(to, from, stride));
        }
    }

    Rows all() const { return {data.data(), stride, count}; }
};

constexpr float kAfter = 7;

/// Outputs of all rows, and kAfter, which must stay.
std::vector<float> multiplied(const Kernels& kernels, const Matrix& matrix, const Inputs& in) {
    std::vector<float> out(in.count * kOutputs + 1, kAfter);
    kernels.matmul(matrix, in.all(), 0, tiles(kOutputs), {out.data(), kOutputs});
    return out;
}

/// Whether rows have the same bits in company of any size, in another order, tile by tile.
bool invariant(const Kernels& kernels, const Matrix& matrix, const Inputs& in, const std::vector<float>& together) {
    std::vector<int32_t> order(in.count);
    std::iota(order.rbegin(), order.rend(), 0);
    for (int64_t count = 1; count <= kMostRows; count++) {
        std::vector<float> apart(together.size());
        for (int64_t first = 0; first < in.count; first += count) {
            const int32_t* some = order.data() + first;
            const Rows rows{in.data.data(), in.stride, std::min(count, in.count - first), some};
            for (int64_t tile = tiles(kOutputs) - 1; tile >= 0; tile--) {
                kernels.matmul(matrix, rows, tile, tile + 1, {apart.data(), kOutputs, some});
            }
        }
        if (!same_bits(apart, together)) return false;
    }
    return true;
}

/// Whether rows with a scale are added to what is there.
bool adds(const Kernels& kernels, const Matrix& matrix, const Inputs& in, const std::vector<float>& once) {
    const std::vector<float> scale = random_floats(in.count);
    std::vector<float> found = once, wanted = once;
    kernels.matmul(matrix, in.all(), 0, tiles(kOutputs), {found.data(), kOutputs, nullptr, scale.data()});
    for (int64_t i = 0; i < in.count * kOutputs; i++) wanted[i] += scale[i / kOutputs] * once[i];
    return same_bits(found, wanted);
}

/// Whether a row's outputs are no numbers where one of its values is none, and its neighbour's are.
bool keeps_not_a_number(const Kernels& kernels, const Case& c, const Matrix& matrix) {
    std::vector<float> x = random_floats(2 * c.columns);
    x[c.columns + 9] = NAN;
    const std::vector<float> out = multiplied(kernels, matrix, Inputs(kernels, c, x));
    const auto second = out.begin() + kOutputs;
    return std::all_of(out.begin(), second, [](float y) { return std::isfinite(y); }) &&
           std::all_of(second, second + kOutputs, [](float y) { return std::isnan(y); });
}

void add_bits(uint64_t& bits, const std::vector<float>& values) {
    std::vector<unsigned char> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    for (const unsigned char byte : bytes) bits = (bits ^ byte) * 0x100'0000'01B3;
}

/// Each output by itself, since it is as large as its weights.
void compare(const Case& c, const std::vector<float>& out, const std::vector<float>& wanted, Subject& subject) {
    for (size_t output = 0; output < kOutputs; output++) {
        const double apart = difference(out, wanted, output, kOutputs);
        subject.expect(apart < kRounding, c.name, "products differ");
        subject.products = std::max(subject.products, apart);
    }
}

void check(const Case& c, Subject& subject) {
    const Kernels& kernels = subject.kernels;
    const std::vector<std::byte> weights = random_tiles(c.format, c.columns, kOutputs);
    const Matrix matrix{c.format, c.columns, kOutputs, weights.data()};
    const std::vector<float> x = random_floats(kPrefill * c.columns);
    const Inputs in(kernels, c, x), expected(reference, c, x);
    subject.expect(in.data == expected.data, c.name, "quantised rows differ");
    std::vector<float> out = multiplied(kernels, matrix, in), wanted = multiplied(reference, matrix, expected);
    subject.expect(out.back() == kAfter, c.name, "more is written than there is");
    out.pop_back();
    wanted.pop_back();
    compare(c, out, wanted, subject);
    subject.expect(invariant(kernels, matrix, in, out), c.name, "a row's bits depend on its company");
    subject.expect(adds(kernels, matrix, in, out), c.name, "scaled rows are not added");
    subject.expect(keeps_not_a_number(kernels, c, matrix), c.name, "what is not a number does not stay in its row");
    add_bits(subject.bits, out);
    subject.formats++;
}

/// Blocks of zeros, with a great value, of subnormal ones.
void check_extremes(Subject& subject) {
    const Case c{Format::q8_0, "quantised extremes", 128};
    std::vector<float> x = random_floats(c.columns);
    std::fill_n(x.begin(), 32, 0.0F);
    x[40] = 1e30F;
    for (int i = 64; i < 96; i++) x[i] *= 0x1p-130F;
    subject.expect(Inputs(subject.kernels, c, x).data == Inputs(reference, c, x).data, c.name, "rows differ");
}

}  // namespace

void check_matmul(Subject& subject) {
    random().seed(1);
    for (const Case& c : kCases) check(c, subject);
    check_extremes(subject);
}

}  // namespace emulated

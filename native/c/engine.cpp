// Errors, engines and samplers of ds4.h.

#include "drafter/hyperparameters.h"
#include "handles.h"
#include "model/hyperparameters.h"

namespace ds4::c {
namespace {

thread_local std::string latest_error;

ModelOptions model_options(const ds4_engine_options& given) {
    ModelOptions options;
    if (given.device) options.device = given.device;
    if (given.threads) options.threads = given.threads;
    return options;
}

SamplingPolicy policy_of(const ds4_policy& given) {
    SamplingPolicy policy;
    policy.temperature = given.temperature;
    policy.top_k = given.top_k;
    policy.top_p = given.top_p;
    policy.min_p = given.min_p;
    return policy;
}

}  // namespace

ds4_status fail(ds4_status status, const char* text) {
    latest_error = text;
    return status;
}

}  // namespace ds4::c

using namespace ds4::c;

const char* ds4_error(void) { return latest_error.c_str(); }

ds4_status ds4_engine_open(const char* target, const ds4_engine_options* options, ds4_engine** engine) {
    return attempt([&] {
        const ds4_engine_options given = options ? *options : ds4_engine_options{};
        ds4_engine*& out = required(engine, "engine");
        out = nullptr;
        if (given.backends) ds4::load_backends(given.backends);
        auto made = std::make_unique<ds4_engine>();
        made->model = ds4::Model::load(&required(target, "target"), model_options(given));
        if (given.drafter) made->drafter = ds4::Drafter::load(given.drafter, *made->model);
        out = made.release();
    });
}

void ds4_engine_close(ds4_engine* engine) { delete engine; }

int32_t ds4_vocab(const ds4_engine* engine) { return static_cast<int32_t>(engine->model->hyperparameters().vocab); }

int32_t ds4_block(const ds4_engine* engine) {
    return engine->drafter ? static_cast<int32_t>(engine->drafter->hyperparameters().block) : 0;
}

ds4_status ds4_sampler_open(const ds4_policy* policy, uint64_t seed, ds4_sampler** sampler) {
    return attempt([&] {
        ds4_sampler*& out = required(sampler, "sampler");
        out = nullptr;
        out = new ds4_sampler{ds4::Sampler(policy ? policy_of(*policy) : ds4::SamplingPolicy{}), ds4::Rng(seed)};
    });
}

void ds4_sampler_close(ds4_sampler* sampler) { delete sampler; }

// The values that a session's state is made of, and when each of them is forgotten.

#include <cmath>

#include "check.h"
#include "session/device_draft.h"
#include "session/frontier_logits.h"
#include "session/verified_rows.h"

namespace {

using namespace ds4::session;

CASE(verified_rows_are_forgotten_as_a_whole) {
    VerifiedRows rows;
    CHECK(rows.size() == 0 && !rows.read() && !rows.logits());
    float* memory = rows.host_memory(4, 3);
    for (int i = 0; i < 6; i++) memory[i] = static_cast<float>(i);
    const std::vector<int32_t> tokens{7, 8};
    rows.set(tokens, nullptr, true);
    CHECK(rows.size() == 2 && rows.read() && rows.proposals().size() == 1 && rows.proposals()[0] == 8);
    CHECK(rows.host_logits().size() == 6 && rows.host_row(1)[0] == 3.0f);
    rows.clear();
    CHECK(rows.size() == 0 && !rows.read() && rows.host_logits().empty());
    CHECK(rows.host_memory(4, 3) == memory);
}

CASE(frontier_logits_are_in_one_place) {
    FrontierLogits logits;
    CHECK(!logits.on_host() && !logits.on_device());
    logits.set(std::vector<float>{1, 2});
    CHECK(logits.on_host() && !logits.on_device() && logits.host().size() == 2);
    const FrontierLogits before = logits;
    logits.set_on_device();
    CHECK(!logits.on_host() && logits.on_device() && logits.host().empty());
    logits.clear();
    CHECK(!logits.on_host() && !logits.on_device());
    CHECK(before.on_host() && before.host()[1] == 2.0f);
}

CASE(a_device_draft_lasts_until_the_next) {
    DeviceDraft draft;
    CHECK(!draft.holds(0));
    draft.begin();
    CHECK(!draft.holds(1));
    const std::vector<int32_t> tokens{4, 5, 6}, first{4, 5}, other{4, 6};
    const uint64_t number = draft.keep(tokens, 0.5f, {1, 1, 1});
    CHECK(number == 1 && draft.holds(number) && !draft.holds(number + 1));
    CHECK(draft.drew(number, 0.5f, first) && !draft.drew(number, 0.5f, other) && !draft.drew(number, 0.6f, first));
    draft.begin();
    CHECK(!draft.holds(number) && !draft.holds(number + 1) && !draft.drew(number, 0.5f, first));
}

CASE(q_of_a_device_draft_is_the_softmax_of_its_logits) {
    DeviceDraft draft;
    draft.begin();
    const float sum = std::log(std::exp(0.0f) + std::exp(2.0f));
    draft.keep({0}, 0.5f, {sum});
    std::vector<float> q{0, 1};
    draft.to_q(q);
    CHECK(std::abs(q[0] + q[1] - 1) < 1e-6f && q[1] > q[0]);
}

}  // namespace

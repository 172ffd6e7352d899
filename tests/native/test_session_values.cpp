// The values that a session's state is made of, and when each of them is forgotten.

#include <cmath>

#include "check.h"
#include "ds4/errors.h"
#include "session/device_draft.h"
#include "session/frontier.h"
#include "session/frontier_logits.h"
#include "session/verified_rows.h"

namespace {

using namespace ds4::session;

template <typename F>
bool refused(F call) {
    try {
        call();
    } catch (const ds4::RequestError&) {
        return true;
    }
    return false;
}

CASE(verified_rows_are_forgotten_as_a_whole) {
    VerifiedRows rows(3);
    CHECK(rows.empty() && rows.size() == 0 && rows.logits().empty());
    float* memory = rows.host_memory();
    for (int i = 0; i < 6; i++) memory[i] = static_cast<float>(i);
    const std::vector<int32_t> tokens{7, 8};
    rows.set(tokens, nullptr, true);
    CHECK(rows.size() == 2 && rows.on_host() && rows.proposals().size() == 1 && rows.proposals()[0] == 8);
    CHECK(rows.logits().size() == 6 && rows.row(1)[0] == 3.0f);
    rows.drop();
    CHECK(rows.empty() && rows.logits().empty());
    rows.set(tokens, nullptr, false);
    CHECK(!rows.on_host());
    CHECK(rows.host_memory() == memory && rows.empty());
}

CASE(frontier_logits_are_on_the_host_or_the_device_or_unknown) {
    FrontierLogits logits;
    CHECK(!logits.on_host() && !logits.on_device());
    logits.set({1, 2});
    CHECK(logits.on_host() && !logits.on_device() && logits.row().size() == 2);
    const FrontierLogits before = logits;
    logits.keep_on_device();
    CHECK(!logits.on_host() && logits.on_device());
    logits.read({3, 4});
    CHECK(logits.on_host() && logits.on_device() && logits.row()[0] == 3.0f);
    logits.set({5, 6});
    CHECK(logits.on_host() && !logits.on_device());
    logits.forget();
    CHECK(!logits.on_host() && !logits.on_device());
    CHECK(before.on_host() && before.row()[1] == 2.0f);
}

CASE(a_device_draft_lasts_until_the_next) {
    DeviceDraft draft;
    CHECK(refused([&] { draft.require(0); }));
    draft.begin();
    CHECK(refused([&] { draft.require(1); }));
    const std::vector<int32_t> tokens{4, 5, 6}, first{4, 5}, other{4, 6};
    const uint64_t number = draft.keep(tokens, 0.5f, {1, 1, 1});
    CHECK(number == 1 && !refused([&] { draft.require(number); }) && refused([&] { draft.require(number + 1); }));
    CHECK(!refused([&] { draft.require_drawn(number, first, 0.5f); }));
    CHECK(refused([&] { draft.require_drawn(number, other, 0.5f); }));
    const std::vector<int32_t> longer{4, 5, 6, 7};
    CHECK(refused([&] { draft.require_drawn(number, longer, 0.5f); }));
    CHECK(refused([&] { draft.require_drawn(number, first, 0.6f); }));
    draft.begin();
    CHECK(refused([&] { draft.require(number); }) && refused([&] { draft.require_drawn(number, first, 0.5f); }));
}

CASE(q_of_a_device_draft_is_the_softmax_of_its_logits) {
    DeviceDraft draft;
    draft.begin();
    const std::vector<int32_t> tokens{0};
    draft.keep(tokens, 0.5f, {std::log(std::exp(0.0f) + std::exp(2.0f))});
    const std::vector<float> q = draft.q({0, 1});
    CHECK(std::abs(q[0] + q[1] - 1) < 1e-6f && std::abs(q[1] / q[0] - std::exp(2.0f)) < 1e-4f);
}

CASE(a_frontier_goes_back_within_the_slack_of_what_was_written) {
    Frontier frontier;
    const std::vector<int32_t> ids(40, 1);
    frontier.write(40);
    frontier.append(ids);
    frontier.write(ds4::state::kMaxRows - 4);
    CHECK(frontier.position() == 40 && frontier.in_slack(36) && !frontier.in_slack(35) && frontier.in_slack(0));
    frontier.lower(36);
    CHECK(frontier.position() == 36 && frontier.mark().written_end == 40 + ds4::state::kMaxRows - 4);
    frontier.lower(0);
    CHECK(frontier.position() == 0 && frontier.mark().written_end == 0 && frontier.tokens().empty());
    CHECK(frontier.features_from() == 0);
}

CASE(a_draft_projects_what_was_committed_since_the_one_before) {
    Frontier frontier;
    const std::vector<int32_t> ids(10, 1), more(3, 1);
    frontier.append(ids);
    CHECK(frontier.rows_to_project(32) == 10 && frontier.rows_to_project(4) == 4);
    frontier.project();
    CHECK(frontier.rows_to_project(32) == 0);
    frontier.append(more);
    CHECK(frontier.rows_to_project(32) == 3);
    frontier.project();
    frontier.lower(11);  // the window before reaches further back than what is in the rings
    CHECK(frontier.rows_to_project(32) == 11 && frontier.rows_to_project(8) == 8);
    frontier.restore(ids, {10, 10, 4, 6});
    CHECK(frontier.features_from() == 6 && frontier.rows_to_project(32) == 4);
    frontier.lower(5);  // features of positions that are evaluated again are there
    CHECK(frontier.features_from() == 5 && frontier.rows_to_project(32) == 0);
    frontier.lower(0);
    CHECK(frontier.features_from() == 0);
}

}  // namespace

#pragma once
// What the handles of ds4.h hold, and how an exception becomes a status.

#include <memory>
#include <string>
#include <vector>

#include "ds4/ds4.h"
#include "ds4/session.h"

struct ds4_engine {
    std::shared_ptr<const ds4::Model> model;
    std::shared_ptr<const ds4::Drafter> drafter;
};

struct ds4_sampler {
    ds4::Sampler sampler;
    ds4::Rng rng;
};

struct ds4_session {
    std::unique_ptr<ds4::Session> session;
    ds4::DraftBlock draft;          // the latest at this frontier
    std::vector<int32_t> verified;  // anchor and proposals of the latest verify
    std::span<const float> logits;  // its rows
};

namespace ds4::c {

/// Keeps what ds4_error tells, and gives the status back.
ds4_status fail(ds4_status status, const char* text);

/// Runs `body`; what it throws becomes a status.
template <typename F>
ds4_status attempt(F body) {
    try {
        body();
        return DS4_OK;
    } catch (const RequestError& error) {
        return fail(DS4_REQUEST, error.what());
    } catch (const FormatError& error) {
        return fail(DS4_FORMAT, error.what());
    } catch (const PairError& error) {
        return fail(DS4_PAIR, error.what());
    } catch (const BackendError& error) {
        return fail(DS4_BACKEND, error.what());
    } catch (const Cancelled& error) {
        return fail(DS4_CANCELLED, error.what());
    } catch (const std::exception& error) {
        return fail(DS4_INTERNAL, error.what());
    } catch (...) {
        return fail(DS4_INTERNAL, "an error of an unknown kind");
    }
}

/// A handle or a place for a result that must not be null; `what` names it. Throws RequestError.
template <typename T>
T& required(T* pointer, const char* what) {
    if (!pointer) throw RequestError(std::string(what) + " is NULL");
    return *pointer;
}

}  // namespace ds4::c

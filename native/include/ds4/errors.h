#pragma once
// The error family every public call may throw; the bindings map each to its Python class of the same name.
// A message says where, what was found, what was wanted, and what to do.

#include <stdexcept>
#include <string>

namespace ds4 {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A file is malformed, truncated, or not a model of ours.
struct FormatError : Error {
    using Error::Error;
};

/// Target and drafter do not fit together.
struct PairError : Error {
    using Error::Error;
};

/// The caller asked for something that cannot be done (bad argument, context exhausted).
struct RequestError : Error {
    using Error::Error;
};

/// A device or its memory failed.
struct BackendError : Error {
    using Error::Error;
};

/// The call was stopped by cancel(); the session is as before the call's unfinished part.
struct Cancelled : Error {
    Cancelled() : Error("cancelled") {}
};

}  // namespace ds4

#pragma once
// The errors that public calls throw. The Python bindings map each type to the class of the same name.
// A message says where the error is, what was found, what was wanted, and what to do.

#include <stdexcept>
#include <string>

namespace ds4 {

/// The base of all errors that ds4 throws.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A file is malformed, truncated, or of another kind than the call expects.
struct FormatError : Error {
    using Error::Error;
};

/// A drafter does not fit its target.
struct PairError : Error {
    using Error::Error;
};

/// The caller asked for something impossible: an argument out of range, or more positions than the context has.
struct RequestError : Error {
    using Error::Error;
};

/// A device failed, has no room, or cannot be reached.
struct BackendError : Error {
    using Error::Error;
};

/// cancel() stopped the call. The session is left as it was before the part of the call that did not finish.
struct Cancelled : Error {
    Cancelled() : Error("cancelled") {}
};

}  // namespace ds4

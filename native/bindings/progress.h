#pragma once
// The progress callback of loading a model.

#include <functional>

#include "ds4/model.h"

namespace ds4::bindings {

/// Returns a callback that calls Python's `progress(fraction)`, if there is one, and lets Ctrl-C stop the load. The
/// caller does not hold the GIL.
LoadProgress load_progress(std::function<void(double)> progress);

}  // namespace ds4::bindings

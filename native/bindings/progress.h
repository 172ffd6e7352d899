#pragma once
// The progress callback of a load.

#include <functional>

#include "ds4/model.h"

namespace ds4::bindings {

/// Calls Python's progress(fraction), which may be none, and lets Ctrl-C stop the load. For calls without the GIL.
LoadProgress load_progress(std::function<void(double)> progress);

}  // namespace ds4::bindings

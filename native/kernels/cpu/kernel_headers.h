#pragma once
// What every processor's kernels.cpp needs before it opens its namespace.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define GGML_COMMON_IMPL_CPP
#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "ggml-common.h"  // the codebooks of the I types

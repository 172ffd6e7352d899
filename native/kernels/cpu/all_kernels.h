// All kernels; a processor's kernels.cpp includes them within its namespace, behind its own vectors. Each builds upon
// those before it.

// clang-format off
#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/matmul.h"
#include "cpu/quantise.h"
#include "cpu/rows.h"
#include "cpu/attention.h"
#include "cpu/index.h"
// clang-format on

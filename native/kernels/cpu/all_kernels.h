// Includes all kernels; a processor's kernels.cpp includes this within its namespace, behind its own vectors. Each
// builds upon those before it.

// clang-format off
#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/matmul.h"
#include "cpu/quantise.h"
#include "cpu/rows.h"
#include "cpu/attention.h"
#include "cpu/index.h"
// clang-format on

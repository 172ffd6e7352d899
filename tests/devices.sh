#!/usr/bin/env bash
# Compiles the kernels for other devices, with their launchers, by the compilers that there are, and prints what each
# kernel takes of a processor: NVIDIA's nvcc; clang-19, Debian's where it is not installed, for AMD's; Metal's where
# there is xcrun. Needs cmake. A kernel that keeps registers in memory is a failure. DS4_GGML_DIR is a ggml tree.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/debian.sh

if [ ! -e "${DS4_GGML_DIR:-}/include/ggml-backend.h" ]; then
  echo "device kernels: no include/ggml-backend.h in DS4_GGML_DIR, '${DS4_GGML_DIR:-}'; give a ggml tree" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
common=(-std=c++20 -Inative/kernels -Inative/include "-I$DS4_GGML_DIR/include")

# table DEVICE WAVE   of lines "kernel registers shared spilled" a table, and whether nothing was spilled. Kernels for
#                     waves that the device has not are left out; their names end with the width of waves in <>.
table() {
  c++filt | awk -v device="$1" -v wave="<$2[,>]" '
    match($0, /[a-z_]+</) && $0 ~ wave {
      name = substr($0, RSTART, length($0) - RSTART + 1); sub(/\(.*/, "", name); gsub(/ds4::kernels::simt::/, "", name)
      printf "%-8s %-40s %4d registers %6d shared bytes %4d spilled\n", device, name, $(NF - 2), $(NF - 1), $NF
      kernels++; spilled += $NF
    }
    END {
      if (!kernels) print device ": no kernels were found"
      if (spilled) print device ": kernels keep registers in memory"
      exit (!kernels || spilled > 0)
    }'
}

# cuda ARCHITECTURE -cubin|-c   without the launcher's host code, or with it.
cuda() {
  nvcc "${common[@]}" -arch="sm_$1" -Xptxas -v "$2" native/kernels/gpu/cuda/launcher.cu -o "$work/sm_$1.o" 2>"$work/sm_$1" ||
    { cat "$work/sm_$1"; return 1; }
  if grep -i warning "$work/sm_$1"; then return 1; fi
  awk '/Compiling entry function/ { gsub(/\047/, "", $7); name = $7 }
       /bytes stack frame/ { stack = $1 }
       /Used [0-9]+ registers/ {
         shared = 0
         for (i = 1; i <= NF; i++) if ($i == "smem" || $i == "smem,") shared = $(i - 2)
         print name, $5, shared, stack
       }' "$work/sm_$1" | table "sm_$1" 32
}

# hip ARCHITECTURE WAVE
hip() {
  "$clang" -x hip --cuda-device-only -nogpuinc -nogpulib --offload-arch="$1" -D__HIP_PLATFORM_AMD__ "${amd[@]}" \
    -O3 -S native/kernels/gpu/hip/launcher.hip -o "$work/$1"
  awk '/^    \.name:/ { name = $2 }
       /\.group_segment_fixed_size:/ { shared = $2 }
       /\.private_segment_fixed_size:/ { stack = $2 }
       /^    \.vgpr_count:/ { print name, $2, shared, stack }' "$work/$1" | table "$1" "$2"
  "$clang" --target=amdgcn-amd-amdhsa -mcpu="$1" -x assembler "$work/$1" -Wl,--no-undefined -o "$work/$1.code"
}

nvidia() {
  if ! command -v nvcc >/dev/null; then
    echo "CUDA: skipped, needs nvcc"
    return
  fi
  cuda 80 -c
  for architecture in 90 120 121; do cuda $architecture -cubin; done
}

# What AMD's kernels and the check of Metal's need, Debian's where it is not installed.
clang=clang++-19 headers=/usr/include
fetch_clang() {
  local packages=()
  command -v $clang >/dev/null || packages+=(clang-19)
  command -v ld.lld-19 >/dev/null || packages+=(lld-19)
  [ -e $headers/hip/hip_runtime.h ] || packages+=(libamdhip64-dev)
  [ ${#packages[@]} = 0 ] || unpack_debian "$work/debian" "${packages[@]}" ||
    echo "device kernels: could not fetch Debian's ${packages[*]}"
  [ -e $headers/hip/hip_runtime.h ] || headers=$work/debian/root$headers
}

amd() {
  if ! command -v $clang >/dev/null || ! command -v ld.lld-19 >/dev/null || [ ! -e "$headers/hip/hip_runtime.h" ]; then
    echo "HIP: skipped, needs $clang, ld.lld-19 and HIP's headers"
    return
  fi
  mkdir "$work/include"
  ln -s "$headers/hip" "$work/include/hip" # -isystem must not name /usr/include itself
  amd=("${common[@]}" -Wall -Wextra -Werror -isystem "$work/include")
  hip gfx1100 32
  hip gfx1151 32
  hip gfx942 64
  "$clang" -x hip --cuda-host-only -nogpuinc -nogpulib -D__HIP_PLATFORM_AMD__ "${amd[@]}" \
    -c native/kernels/gpu/hip/launcher.hip -o "$work/hip.o"
  echo "HIP: the launcher's host code compiles"
}

# metal_texts   each Metal kernel as one text, as a build makes it, in $work/metal, and all of them as a build includes them.
metal_texts() {
  mkdir -p "$work/metal"
  for source in native/kernels/metal/*.metal; do
    cmake -DROOT=native/kernels -DSOURCE="metal/${source##*/}" -DOUTPUT="$work/metal/${source##*/}" \
      -P cmake/metal_source.cmake
    { echo 'R"METAL(' && cat "$work/metal/${source##*/}" && echo ')METAL",'; } >>"$work/metal/sources.inc"
  done
}

# On macOS by Metal's compiler. Elsewhere the launcher and the kernels are checked against declarations of our own, the
# kernels as OpenCL C++, whose address spaces are Metal's.
metal() {
  metal_texts
  if xcrun --find metal >/dev/null 2>&1; then
    for text in "$work"/metal/*.metal; do
      xcrun metal -std=metal3.0 -fno-fast-math -Wall -Werror -c "$text" -o "$text.air"
      echo "Metal: ${text##*/} compiles"
    done
  elif command -v $clang >/dev/null; then
    for source in native/kernels/metal/*.mm; do
      $clang -x objective-c++ -fobjc-arc -fblocks -fobjc-runtime=macosx -fsyntax-only -Wall -Wextra -Werror \
        "${common[@]}" -Itests/metal_headers -I"$work" "$source"
    done
    for text in "$work"/metal/*.metal; do
      $clang -x clcpp -cl-std=clc++2021 -cl-no-stdinc -fsyntax-only -Wall -Werror -Wno-unknown-attributes \
        -isystem tests/metal_headers "$text"
    done
    echo "Metal: launcher and kernels agree with declarations of our own; to compile them needs xcrun metal"
  else
    echo "Metal: skipped, needs xcrun metal or $clang"
  fi
}

fetch_clang
nvidia >"$work/found.1" 2>&1 &
amd >"$work/found.2" 2>&1 &
metal >"$work/found.3" 2>&1 &
failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
cat "$work"/found.*
exit $failed

#!/usr/bin/env bash
# Compares CPU kernels for processors that this machine need not have with the portable ones: NEON's on an emulated
# arm64 (qemu-aarch64), those for AVX-512 and AVX-VNNI with SIMDe in place of the instructions where they are missing.
# Products must have the same bits everywhere. Then asks which kernels are chosen on older processors. Compiler,
# emulators and SIMDe are Debian's; what lacks its own is skipped. DS4_GGML_DIR is a ggml tree, such as
# ggml-source/*/ggml in a folder where the project was built.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/debian.sh

if [ "$(uname -sm)" != "Linux x86_64" ] || ! grep -qw avx2 /proc/cpuinfo; then
  echo "emulated kernels: skipped, the emulation needs Linux on x86-64 with AVX2"
  exit 0
fi
if [ ! -e "${DS4_GGML_DIR:-}/src/ggml-common.h" ]; then
  echo "emulated kernels: no src/ggml-common.h in DS4_GGML_DIR, '${DS4_GGML_DIR:-}'; give a ggml tree" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/arm64" "$work/x86" "$work/include"

cross=aarch64-linux-gnu-g++ simde=/usr/include/simde packages=()
command -v $cross >/dev/null || packages+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || packages+=(qemu-user)
[ -d $simde ] || packages+=(libsimde-dev)
if [ ${#packages[@]} -gt 0 ]; then
  unpack_debian "$work/debian" "${packages[@]}" || echo "emulated kernels: could not fetch Debian's ${packages[*]}"
  [ -d $simde ] || simde=$work/debian/root$simde
fi
[ ! -d "$simde" ] || ln -s "$simde" "$work/include/simde" # -isystem must not name /usr/include itself

common=(-std=c++20 -ffp-contract=off -Wall -Wextra -Werror -Inative/kernels -I"$DS4_GGML_DIR"/{include,src})
common+=(-Wno-uninitialized -Wno-maybe-uninitialized) # see cmake/kernels.cmake

# kernels FOLDER NAME COMPILER FLAGS...
kernels() { "${@:3}" "${common[@]}" -c "native/kernels/cpu/$2/kernels.cpp" -o "$work/$1/$2.o"; }

# programs FOLDER COMPILER FLAGS...   what compares the folder's kernels with the portable ones, and what chooses.
programs() {
  kernels "$1" portable "$2" -O1
  "${@:2}" "${common[@]}" tests/emulated/{main,matmul,steps}.cpp "$work/$1"/*.o -o "$work/$1/agreement"
  "${@:2}" "${common[@]}" tests/emulated/choice.cpp native/kernels/cpu/available.cpp -o "$work/$1/choice"
}

# chosen FOLDER EMULATOR CPU KERNELS   whether these are chosen there.
chosen() {
  local found
  found=$("$2" -cpu "$3" "$work/$1/choice" 2>/dev/null) # the emulator warns of features that it lacks
  echo "$3 ($2): $found is chosen"
  [ "$found" = "$4" ]
}

arm64() {
  if ! command -v $cross >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    echo "neon: skipped, needs $cross and qemu-aarch64"
    return
  fi
  kernels arm64 neon $cross -O3 -march=armv8.2-a+dotprod # as shipped: nothing else runs what this compiler makes
  programs arm64 $cross -static
  qemu-aarch64 -cpu max "$work/arm64/agreement" neon "emulated: qemu-aarch64"
  chosen arm64 qemu-aarch64 cortex-a76 neon
  chosen arm64 qemu-aarch64 cortex-a72 portable
}

# beyond_avx2 NAME FEATURE FLAGS...   as the processor has it, else emulated; adds to what is compared.
beyond_avx2() {
  if grep -qw "$2" /proc/cpuinfo; then
    kernels x86 "$1" "${avx2[@]}" -O1 "${@:3}"
    compared+=("$1" "this processor")
  elif [ -d "$work/include/simde" ]; then # -Og, since what stands for an instruction is long
    kernels x86 "$1" "${avx2[@]}" -Og -Wno-psabi -isystem tests/emulated/simde -isystem "$work/include"
    compared+=("$1" "emulated: SIMDe")
  else
    echo "$1: skipped, needs SIMDe"
  fi
}

x86() {
  local compiler=${CXX:-c++} compared=(avx2 "this processor")
  local avx2=("$compiler" -mavx2 -mfma -mf16c)
  kernels x86 avx2 "${avx2[@]}" -O1
  beyond_avx2 avx2vnni avx_vnni -mavxvnni
  beyond_avx2 avx512 avx512_vnni -mavx512f -mavx512bw -mavx512vnni
  programs x86 "$compiler"
  "$work/x86/agreement" "${compared[@]}"
  if command -v qemu-x86_64 >/dev/null; then
    chosen x86 qemu-x86_64 Haswell avx2
    chosen x86 qemu-x86_64 Nehalem portable
  fi
}

arm64 >"$work/found.arm64" 2>&1 &
x86 >"$work/found.x86" 2>&1 &
failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
cat "$work"/found.*
if [ "$(awk '/formats, rows/ { print $NF }' "$work"/found.* | sort -u | wc -l)" != 1 ]; then
  echo "emulated kernels: the numbers of the products' bits, which end the lines, are not all the same"
  failed=1
fi
exit $failed

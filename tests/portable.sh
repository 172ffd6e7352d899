#!/usr/bin/env bash
# Builds a wheel for distribution (DS4_PORTABLE) and generates with it, here and on an emulated Haswell, an x86-64 CPU
# of 2013 without AVX-512: a build that is tuned for newer CPUs dies there by an illegal instruction.
# Needs qemu-x86_64 (Debian: qemu-user), which is installed where that is possible. PYTHON names the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "portable build: skipped, the emulated CPU needs Linux on x86-64"
  exit 0
fi
if ! command -v qemu-x86_64 >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "portable build: qemu-x86_64 is missing; install Debian's qemu-user" >&2
    exit 1
  fi
  apt-get update -qq
  apt-get install -y -qq qemu-user >/dev/null
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# -O1: a dozen variants of ggml's kernels take long to optimise, and flags alone let in what an older CPU lacks.
"${PYTHON:-python3}" -m venv "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$work" --config-settings=build-dir="$work/build" \
  --config-settings=cmake.define.DS4_PORTABLE=ON \
  --config-settings=cmake.define.CMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" \
  --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" .
"$python" -m pip install --quiet "$work"/ds4py-*.whl

# Ids are compared by number only: another CPU's kernels may round a near tie to another token.
check='import json, sys; found = json.load(sys.stdin); assert len(found["ids"]) == 8, found; print(sys.argv[1], found["ids"])'
cd "$work"
for cpu in "" Haswell; do
  # The emulator warns of features it lacks, so messages are shown only when something fails.
  if ! ${cpu:+qemu-x86_64 -cpu "$cpu"} "$python" -m ds4py generate -q -t 1 -n 8 --temp 0 --json --prompt-ids 1,2,3,4 \
    2>messages | "$python" -c "$check" "portable build on ${cpu:-this machine}:"; then
    cat messages >&2
    exit 1
  fi
done

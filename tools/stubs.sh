#!/usr/bin/env bash
# Writes ds4py/_native.pyi from the installed native module; with --check it only compares, and fails when the file
# is not current. Needs the environment where ds4py with its test extra is installed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stub="$root/ds4py/_native.pyi"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Not from the tree's root: there, Python would take the source folder for the installed package.
cd "$work"
pybind11-stubgen --exit-code --root-suffix "" --output-dir "$work" ds4py._native >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
made=$work/ds4py/_native.pyi

# pybind11 writes what it would convert; a caller should give the plain numbers. RUF013: `= None` says `| None`; it
# does not know our own classes.
sed -i.bak -e 's/typing\.SupportsInt | typing\.SupportsIndex/int/g' \
  -e 's/typing\.SupportsFloat | typing\.SupportsIndex/float/g' \
  -e 's/: \([A-Z][A-Za-z]*\) = None/: \1 | None = None/g' "$made"
ruff check --quiet --config "$root/pyproject.toml" --select I,RUF013,RUF022 --unsafe-fixes --fix "$made"
ruff format --quiet --config "$root/pyproject.toml" "$made"

if [ "${1:-}" != --check ]; then
  cp "$made" "$stub"
elif ! diff -u "$stub" "$made"; then
  echo "ds4py/_native.pyi is not current: install this tree, then run tools/stubs.sh" >&2
  exit 1
fi

#!/usr/bin/env bash
# tests/on_device.sh DEVICE [pytest's options]: the tests that say whether a device computes what it should. Golden logits of
# target and drafter, prompts in chunks and long ones, rejected rows at every boundary, saving, drafting, exactness.
# `rpc` is a server on this machine's CPU: a device whose memory cannot be addressed, without a GPU. Not among them is
# what holds of the CPU's own kernels only: bits that do not depend on the rows beside them.
set -euo pipefail
cd "$(dirname "$0")/.."
export DS4_TEST_DEVICE=$1 DS4_TRUST=all
shift
exec pytest -m on_device "$@"

#!/usr/bin/env bash
# bench/gpu.sh [BACKEND] [options]   on a machine with a GPU: builds ds4py with a backend into an environment of its own,
# and says whether it computes rightly and how fast. BACKEND is cuda, hip, vulkan or metal (found out by itself), or cpu or
# rpc, which try the script out on any machine.
#   --model FILE           a target to measure (default: the embedded one, whose times are launches and not arithmetic)
#   --drafter FILE         its drafter
#   --llama-python PYTHON  an interpreter with llama-cpp-python built for the same GPU: the peer of the measurements
#   --out DIR              where what is printed also goes (default: gpu-BACKEND)
#   --quick                fewer rounds and tests, to try it out
# GPU_TARGETS names AMD's architecture, such as gfx1151, where rocminfo is not to be asked; CMAKE_ARGS adds to the build.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }

detected() {
  if [ "$(uname)" = Darwin ]; then echo metal
  elif command -v nvcc >/dev/null && [ -e /proc/driver/nvidia/version ]; then echo cuda
  elif command -v hipconfig >/dev/null && [ -e /dev/kfd ]; then echo hip
  elif command -v glslc >/dev/null && compgen -G '/dev/dri/renderD*' >/dev/null; then echo vulkan
  else
    echo "gpu.sh: no GPU with its toolkit was found; name the backend, or try the script out with 'cpu'" >&2
    return 1
  fi
}

backend="" model="" drafter="" llama="" out="" quick=""
while [ $# -gt 0 ]; do
  case $1 in
    cuda | hip | vulkan | metal | cpu | rpc) backend=$1 ;;
    --quick) quick=1 ;;
    --model | --drafter | --llama-python | --out)
      [ $# -gt 1 ] || usage
      case $1 in
        --model) model=$2 ;;
        --drafter) drafter=$2 ;;
        --llama-python) llama=$2 ;;
        --out) out=$2 ;;
      esac
      shift ;;
    *) usage ;;
  esac
  shift
done
[ -n "$backend" ] || backend=$(detected)
out=${out:-gpu-$backend}
mkdir -p "$out"
out=$(cd "$out" && pwd)

case $backend in
  cuda) device=cuda:0 flags=-DGGML_CUDA=ON ;;
  hip)
    target=${GPU_TARGETS:-$(rocminfo | awk '$1 == "Name:" && $2 ~ /^gfx/ { print $2; exit }')}
    export HIPCXX=${HIPCXX:-$(hipconfig -l)/clang} HIP_PATH=${HIP_PATH:-$(hipconfig -R)}
    device=hip:0 flags="-DGGML_HIP=ON -DGPU_TARGETS=$target" ;;
  vulkan) device=vulkan:0 flags=-DGGML_VULKAN=ON ;;
  metal) device=metal flags=-DGGML_METAL=ON ;;
  *) device=$backend flags="" ;;
esac

step() { printf '\n== %s (after %d s)\n' "$1" "$SECONDS"; }
failed=()
# run NAME COMMAND...   a step whose failure does not keep the others from being run
run() {
  local name=$1
  shift
  step "$name"
  "$@" 2>&1 | tee "$out/${name// /-}.txt" || failed+=("$name")
}

step "build with $backend"
python3 -m venv "$out/venv"
export PATH="$out/venv/bin:$PATH" DS4_TRUST=all CMAKE_ARGS="$flags ${CMAKE_ARGS:-}"
pip install --quiet --config-settings=build-dir="$out/build" '.[test]'

if [ "$backend" = rpc ]; then
  ds4py rpc-server --device cpu --port 50152 --threads 1 --quiet >"$out/server.txt" 2>&1 &
  server=$!
  trap 'kill $server' EXIT
  device=rpc:127.0.0.1:50152
  sleep 3
fi

arguments=()
[ -z "$model" ] || arguments+=(-m "$model")
[ -z "$drafter" ] || arguments+=(-md "$drafter")
run "doctor" ds4py doctor --device "$device" "${arguments[@]}"
run "tests" tests/on_device.sh "$([ "$backend" = rpc ] && echo rpc || echo "$device")" ${quick:+-k "golden or backend_status"}
run "steps" ds4py profile "${arguments[@]}" --device "$device" --rounds "$([ -n "$quick" ] && echo 3 || echo 7)"
if [ -n "$model" ] && [ "$backend" != rpc ]; then
  run "peers" python bench/peers.py "$model" --device "$device" ${llama:+--llama-python "$llama"} ${quick:+--rounds 1}
fi

step "done"
if [ ${#failed[@]} -gt 0 ]; then
  echo "gpu.sh: failed on $device: ${failed[*]}; what was printed is in $out" >&2
  exit 1
fi
echo "gpu.sh: $device computes rightly; what was printed is in $out"

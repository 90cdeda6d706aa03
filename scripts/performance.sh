#!/bin/sh
# Builds the benchmarks with all that they compare gpud with, runs them, and writes
# docs/performance.md: what was to be reached, what was measured, on which machine and by which
# command. Without a GPU the figures that need one are marked as not measured. Takes about ten minutes.
# usage: scripts/performance.sh [--build DIR] [--keep DIR] [--from DIR]
#   --build DIR   take the benchmarks of that build instead of building preset release
#   --keep DIR    leave the benchmarks' own JSON there
#   --from DIR    write the page from such JSON, run nothing
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=
keep=
from=
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    --keep) keep=$2; shift 2 ;;
    --from) from=$2; shift 2 ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
done
if [ -z "$from" ] && [ -z "$build" ]; then
    "$root/scripts/deps.sh" build bench
    command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
    (cd "$root" && cmake --preset release -DBUILD_TESTING=OFF -DGPUD_BENCH=ON &&
        cmake --build --preset release --parallel "$(nproc)") >&2
    build=$root/build/release
fi
# A page without what gpud is compared with is none.
if [ -z "$from" ] && ! grep -q '^GRPC_FOUND:[A-Z]*=1$' "$build/CMakeCache.txt"; then
    echo "performance: $build was configured without gRPC: run scripts/deps.sh bench, then cmake $build" >&2
    exit 1
fi

if [ -z "$from" ]; then
    from=${keep:-$(mktemp -d)}
    mkdir -p "$from"
    for name in latency throughput inprocess bandwidth overlap coldstart breakeven frames interactive \
        sessions turns writes batches zeros overload decisions hostile remote; do
        echo "performance: bench_$name" >&2
        if ! "$build/bin/bench_$name" --json >"$from/$name.json"; then
            echo "performance: bench_$name failed: its figures are told as not measured" >&2
            rm -f "$from/$name.json"
        fi
    done
    "$root/scripts/count-switches" "$build" >"$from/switches.json"
fi
"$root/scripts/performance-page" "$from" >"$root/docs/performance.md.new"
mv "$root/docs/performance.md.new" "$root/docs/performance.md"
echo "performance: docs/performance.md" >&2

#!/bin/bash
# A storm that lasts: the real daemon, 16 clients that check every result against their own, and
# mishaps of all kinds at once (processes killed and stopped, settings read again, a full disk, no
# descriptors, clients that are silent or take nothing). Prints what was done and what was broken;
# exit status 1 if a promise was broken, with the seed and the last words of the daemon's log.
#   scripts/storm.sh MINUTES [--seed N] [--device sim|opencl|cuda] [--only MISHAP]
#                           [--every MS] [--keep LOG]
#     MINUTES   how long; fractions are allowed (0.5)
#     --seed    the mishaps and the clients' deeds follow from it; the date when left out
#     --device  sim (when left out), opencl or cuda
#     --only    one kind of mishap, by its name in the report
#     --every   milliseconds between two mishaps, instead of chance
#     --keep    a file for the daemon's log, with the mishaps and recoveries in it
# Root mounts a small file system for the full disk, in a name space of the storm's own; where that
# is not permitted the storm says so and goes on without. GPUD_STORM_BUILD: a build folder that is
# taken instead of preset dev.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

minutes=
args=(--seed "$(date +%Y%m%d)")
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --seed | --device | --only | --every | --keep)
        if [ $# -lt 2 ]; then
            echo "storm.sh: $1 needs a value" >&2
            exit 2
        fi
        args+=("$1" "$2") && shift 2
        ;;
    [0-9]*) minutes=$1 && shift ;;
    *)
        echo "storm.sh: no such option: $1" >&2
        usage >&2
        exit 2
        ;;
    esac
done
if [[ ! $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
    echo "storm.sh: MINUTES is missing, or no number: '$minutes'" >&2
    usage >&2
    exit 2
fi
seconds=$(awk -v m="$minutes" 'BEGIN { printf "%d", m * 60 }')

build=${GPUD_STORM_BUILD:-build/dev}
if [ -z "${GPUD_STORM_BUILD:-}" ]; then
    scripts/deps.sh build test
    command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
    cmake --preset dev >/dev/null
    cmake --build --preset dev --target storm >/dev/null
fi
exec "$build/tests/test_storm" --seconds "$seconds" "${args[@]}"

#!/bin/bash
# A storm that lasts: the real daemon, 16 clients that check every result against their own, and
# mishaps of all kinds at once (processes killed and stopped, settings read again, a full disk, no
# descriptors, clients that are silent or take nothing). Prints what was done and what was broken;
# exit status 1 if a promise was broken, with the seed and the last words of the daemon's log.
#   scripts/storm.sh MINUTES [--seed N] [--device sim|opencl] [--only MISHAP] [--keep LOG]
#     MINUTES   how long; fractions are allowed (0.5)
#     --seed    the mishaps and the clients' deeds follow from it; the date when left out
#     --device  sim (when left out) or opencl
#     --only    one kind of mishap, by its name in the report
#     --keep    a file for the daemon's log, with the mishaps in it, if a promise was broken
# Root mounts a small file system for the full disk, in a name space of the storm's own; where that
# is not permitted the storm says so and goes on without. GPUD_STORM_BUILD: a build folder that is
# taken instead of preset dev.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

minutes=
seed=$(date +%Y%m%d)
args=()
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) usage && exit 0 ;;
    --seed) seed=${2:?a number} && shift 2 ;;
    --device | --only | --keep) args+=("$1" "${2:?a value}") && shift 2 ;;
    [0-9]*) minutes=$1 && shift ;;
    *) usage >&2 && exit 2 ;;
    esac
done
seconds=$(awk -v m="$minutes" 'BEGIN { printf "%d", m * 60 }')
if [ "$seconds" -le 0 ]; then
    usage >&2
    exit 2
fi

build=${GPUD_STORM_BUILD:-build/dev}
if [ -z "${GPUD_STORM_BUILD:-}" ]; then
    command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
    cmake --preset dev >/dev/null
    cmake --build --preset dev --target storm >/dev/null
fi
exec "$build/tests/test_storm" --seconds "$seconds" --seed "$seed" ${args[@]+"${args[@]}"}

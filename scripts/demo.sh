#!/bin/bash
# From a clone to a result: installs what is missing, builds, starts a private gpud on the best real
# device of this machine, runs jobs, looks at the daemon, stops it, and leaves nothing running.
#   GPUD_BUILD=DIR    take the programs of that build instead of building
#   GPUD_BACKEND=...  another back end than auto (sim compiles no kernels: not that one)
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

say() { printf '\n== %s\n' "$*"; }

if [ -z "${GPUD_BUILD:-}" ]; then
    say "packages and build"
    scripts/deps.sh build
    command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
    cmake --preset release -DBUILD_TESTING=OFF
    cmake --build --preset release --parallel "$(nproc)"
    GPUD_BUILD=$root/build/release
fi
PATH=$(cd "$GPUD_BUILD" && pwd)/bin:$PATH

dir=$(mktemp -d /tmp/gpud-demo-XXXXXX)
export GPUD_URL=ipc://$dir/gpud.sock
daemon=
all=()

# The daemon's processes: those that name its directory, and their children. Field 2 of stat may
# hold blanks, so what is read begins behind it.
ours() {
    local proc pid parent text
    local -A is_ours=()
    for proc in /proc/[0-9]*; do
        pid=${proc#/proc/}
        if [ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ]; then continue; fi
        text=$(tr '\0' '\n' 2>/dev/null <"$proc/cmdline" || true)
        if grep -qF "$dir" <<<"$text"; then is_ours[$pid]=1; fi
    done
    for _ in 1 2 3; do
        for proc in /proc/[0-9]*; do
            pid=${proc#/proc/}
            if [ "$pid" = $$ ] || [ "$pid" = "$BASHPID" ]; then continue; fi
            text=$(cat "$proc/stat" 2>/dev/null || true)
            read -r _ parent _ <<<"${text##*)}"
            if [ -n "${parent:-}" ] && [ -n "${is_ours[$parent]:-}" ]; then is_ours[$pid]=1; fi
        done
    done
    echo "${!is_ours[@]}"
}

alive() {
    local pid
    for pid in "$@"; do
        # a process that has ended and is not reaped yet has no command line
        if [ -n "$(tr -d '\0' 2>/dev/null <"/proc/$pid/cmdline" || true)" ]; then
            echo "$pid"
        fi
    done
}

stop() {
    if [ -n "$daemon" ] && kill -TERM "$daemon" 2>/dev/null; then
        wait "$daemon" || echo "demo: gpud ended with $?" >&2
    fi
    daemon=
}

finish() {
    local code=$? pid
    stop
    for pid in $(ours) ${all[@]+"${all[@]}"}; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    [ $code -eq 0 ] || sed 's/^/  | /' "$dir/log" >&2 2>/dev/null || true
    rm -rf "$dir"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

if [ ! -d /sys/devices/system/cpu ]; then
    echo "demo: /sys is not mounted, and PoCL ends without it: mount -t sysfs sys /sys" >&2
    exit 1
fi

say "start gpud"
printf '[daemon]\ncache_dir = %s\n' "$dir/cache" >"$dir/gpud.conf"
gpud --foreground --config "$dir/gpud.conf" --runtime-dir "$dir" --listen "$GPUD_URL" \
    --backend "${GPUD_BACKEND:-auto}" >"$dir/log" 2>&1 &
daemon=$!

# Every device is absent, which no waiting changes.
no_device() {
    gpuctl devices 2>/dev/null | awk 'NR > 1 { n++; absent += $3 == "absent" }
                                      END { exit !(n > 0 && n == absent) }'
}

deadline=$((SECONDS + 60))
patience=$((SECONDS + 3))
until gpuctl status >/dev/null 2>&1; do
    if ! kill -0 "$daemon" 2>/dev/null; then
        echo "demo: gpud ended before it was ready:" >&2
        exit 1
    fi
    if [ $SECONDS -ge $patience ] && no_device; then
        echo "demo: there is no device to compute on:" >&2
        gpuctl status >&2 || true
        exit 1
    fi
    if [ $SECONDS -ge $deadline ]; then
        echo "demo: gpud is not ready after 60 s:" >&2
        gpuctl status >&2 || true
        exit 1
    fi
    sleep 0.2
done
gpuctl status

say "gpuctl demo: a photograph through several kernels, checked against the CPU"
gpuctl demo -f "$dir/edges.png"
mkdir -p "$root/build"
cp "$dir/edges.png" "$root/build/demo.png"
echo "  the picture is build/demo.png"

say "a kernel from source"
source=$root/examples/kernels/saxpy.gk
printf '  %s\n' "${source#"$root"/}"
gpuctl run saxpy --source "$source" --arg a=f32:2.5 --arg x=in:f32=1,2,3,4 \
    --arg y=inout:f32=10,20,30,40 --save "y=raw:$dir/y.f32"
result=$(od -An -v -tf4 -w16 "$dir/y.f32" | tr -s ' ')
echo "  y =$result"
if [ "$result" != " 12.5 25 37.5 50" ]; then
    echo "demo: expected 12.5 25 37.5 50" >&2
    exit 1
fi

say "gpuctl status"
gpuctl status
say "gpuctl pool"
gpuctl pool

say "stop"
read -ra all <<<"$(ours)"
echo "processes: ${#all[@]}"
if [ ${#all[@]} -lt 3 ]; then
    echo "demo: expected the daemon, its launcher and a worker at least" >&2
    exit 1
fi
stop
read -ra left <<<"$(alive "${all[@]}" | tr '\n' ' ')"
for _ in $(seq 100); do
    [ ${#left[@]} -gt 0 ] || break
    sleep 0.1
    read -ra left <<<"$(alive "${left[@]}" | tr '\n' ' ')"
done
if [ ${#left[@]} -gt 0 ]; then
    echo "demo: still running:" >&2
    for pid in "${left[@]}"; do
        printf '  %s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")" >&2
    done
    exit 1
fi
all=()
echo "demo: all done, nothing is left running"

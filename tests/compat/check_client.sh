#!/bin/sh
# check_client.sh BIN_DIR SOURCE_DIR VERSION: today's daemon serves the recorded clients of a
# release, and the player finds a code, an output and a field that changed.
set -eu
bin=$1
source=$2
released=$2/$3
dir=$(mktemp -d)
"$bin/gpud" --listen "ipc://$dir/s" --runtime-dir "$dir" --cache-dir "$dir/cache" \
    --backend opencl --foreground >"$dir/log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null || true; wait $daemon || true; rm -rf "$dir"' EXIT
until grep -q '^gpud: ready' "$dir/log"; do
    kill -0 $daemon || { cat "$dir/log" >&2; exit 1; }
    sleep 0.1
done
for stream in "$released"/*.stream; do
    "$source/play.py" "ipc://$dir/s" "$stream" || { cat "$dir/log" >&2; exit 1; }
done
for change in code output field; do
    "$source/play.py" --spoil "$change" "ipc://$dir/s" "$released/scan.stream" >"$dir/said" 2>&1 &&
        { echo "a changed $change is not found" >&2; exit 1; }
    grep 'scan.stream:.*now' "$dir/said"
done

#!/bin/sh
# check.sh BIN_DIR: runs every example against a daemon of its own.
set -eu
bin=$1
dir=$(mktemp -d)
"$bin/gpud" --listen "ipc://$dir/s" --runtime-dir "$dir" --cache-dir "$dir/cache" \
    --foreground >"$dir/log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null || true; wait $daemon || true; rm -rf "$dir"' EXIT
until grep -q '^gpud: ready' "$dir/log"; do
    kill -0 $daemon || { cat "$dir/log" >&2; exit 1; }
    sleep 0.1
done
export GPUD_URL="ipc://$dir/s"
for example in "$bin"/example_*; do
    echo "$example"
    "$example"
done

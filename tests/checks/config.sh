#!/bin/bash
# The configuration as installed is valid as it is, and with every key uncommented (so each key in it
# exists and its default is allowed); a key that does not exist is refused.
# usage: config.sh GPUD FILE
set -euo pipefail
gpud=$1 file=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$gpud" --config "$file" --check-config

sed -E 's/^#([a-z_]+ =)/\1/' "$file" >"$work/all.conf"
if cmp -s "$file" "$work/all.conf"; then
    echo "no key was uncommented" >&2
    exit 1
fi
"$gpud" --config "$work/all.conf" --check-config

printf '[daemon]\nplanted_key = 1\n' >"$work/unknown.conf"
if "$gpud" --config "$work/unknown.conf" --check-config 2>"$work/said"; then
    echo "an unknown key was taken" >&2
    exit 1
fi
if ! grep -q 'unknown.conf:2' "$work/said"; then
    echo "the message does not name file and line:" >&2
    cat "$work/said" >&2
    exit 1
fi

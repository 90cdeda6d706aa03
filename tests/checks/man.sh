#!/bin/sh
# Each function of the library has a man page, and no page makes the formatter complain.
#   man.sh FOLDER SYMBOLS
set -eu
failed=0
missing=$(sed -n 's/^ \(gpud_[a-z0-9_]*\)@.*/\1/p' "$2" | while read -r name; do
    [ -s "$1/$name.3" ] || echo "no man page: $name"
done)
[ -z "$missing" ] || { echo "$missing" >&2 && failed=1; }
for page in "$1"/*.3; do
    if grep -q '^\.so ' "$page"; then
        target=$(sed 's|^\.so man3/||' "$page")
        [ -s "$1/$target" ] || { echo "$page leads to no page: $target" >&2 && failed=1; }
        continue
    fi
    told=$(groff -man -ww -Kutf8 -Tutf8 -z "$page" 2>&1 || true)
    [ -z "$told" ] || { printf '%s\n' "$told" >&2 && failed=1; }
done
exit "$failed"

#!/bin/sh
# check.sh BIN_DIR SOURCE_DIR [LIBRARY]: runs every example against a daemon of its own, and the
# program of README.md, built as C and as C++ against the shared library.
set -eu
bin=$1
source=$2
library=${3:-}
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
[ -n "$library" ] || exit 0

# From the first line of the program to the line that ends its block.
awk '/^```/ {inside = $0 == "```c"; next} inside' "$source/README.md" >"$dir/axpy.c"
grep -q '^int main' "$dir/axpy.c" || { echo "README.md has no program" >&2; exit 1; }
build() {
    "$@" -Wall -Wextra -Werror -I"$source/client/include" -c -o "$dir/axpy.o" "$dir/axpy.c"
    "$1" -o "$dir/axpy" "$dir/axpy.o" "$library" -Wl,-rpath,"$(dirname "$library")"
    said=$("$dir/axpy")
    [ "$said" = "12 24 36 48" ] || { echo "README.md's program ($1) says $said" >&2; exit 1; }
}
echo "README.md"
build "${CC:-cc}" -std=c11
if command -v c++ >/dev/null; then
    build c++ -std=c++17 -xc++
    for name in frames steps threads; do
        c++ -std=c++17 -xc++ -fsyntax-only -I"$source/client/include" "$source/examples/$name.c"
    done
fi
for file in "$source"/examples/*.c; do
    [ "$(wc -l <"$file")" -le 60 ] || { echo "$file: more than 60 lines" >&2; exit 1; }
done

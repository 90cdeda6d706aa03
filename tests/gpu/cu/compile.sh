#!/bin/bash
# Compiles the programs of tests/gpu/cu for the GPU suite, each by nvcc and by NVRTC, as gpud-compile
# does it for the daemon. What is there and newer than its source and the compiler stays.
#   compile.sh BUILD SOURCE OUT [ARCH]   default: sm_90
# Exit status: 0 all are in OUT, as NAME.nvcc and NAME.nvrtc; 77 there is no such compiler here.
set -euo pipefail
build=$1
source=$2
out=$3
export ARCH=${4:-sm_90} BUILD=$build OUT=$out
mkdir -p "$out"

one() {
    local compiler=$1 program=$2 name binary code=0
    name=$(basename "$program" .cu)
    binary=$OUT/$name.$compiler
    if [ "$binary" -nt "$program" ] && [ "$binary" -nt "$BUILD/bin/gpud-compile" ] &&
        [ "$binary" -nt "$BUILD/gpu/gpu-compile" ]; then
        return 0
    fi
    "$BUILD/gpu/gpu-compile" "$BUILD/bin/gpud-compile" "$compiler" "$ARCH" "$program" \
        "$binary.new" >"$binary.log" 2>&1 || code=$?
    if [ $code -ne 0 ]; then
        cat "$binary.log" >&2
        return "$([ $code -eq 77 ] && echo 77 || echo 1)"
    fi
    mv "$binary.new" "$binary"
    rm "$binary.log"
}
both() { one nvcc "$1" && one nvrtc "$1"; }
export -f one both

# One of each alone: a compiler that is not here tells so once.
first=$(find "$source/tests/gpu/cu" -name '*.cu' -print -quit)
for compiler in nvcc nvrtc; do
    one $compiler "$first"
done
find "$source/tests/gpu/cu" -name '*.cu' -print0 | sort -z |
    xargs -0 -P 2 -I '{}' bash -c 'both "$@"' _ '{}'
count=0
for program in "$source"/tests/gpu/cu/*.cu; do
    name=$(basename "$program" .cu)
    if [ ! -s "$out/$name.nvcc" ] || [ ! -s "$out/$name.nvrtc" ]; then
        echo "compile-programs: a binary of $name is not there" >&2
        exit 1
    fi
    count=$((count + 1))
done
echo "compile-programs: $count programs, each by nvcc and by NVRTC"

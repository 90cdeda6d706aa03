#!/bin/bash
# The bundle of the GPU suite from this build: not too large, whole by its own libraries, and without
# a driver it says so and runs nothing.
#   check_bundle.sh BUILD SOURCE FOLDER
set -euo pipefail
build=$1
source=$2
out=$3
rm -rf "$out"
GPUD_BUILD=$build "$source/scripts/gpu-bundle.sh" "$out"

size_kib=$(du -sk "$out" | cut -f 1)
if [ "$size_kib" -ge $((60 * 1024)) ]; then
    echo "the bundle has $size_kib KiB" >&2
    exit 1
fi

# Everything but the C library comes from the bundle; and nothing tells where it was built.
files=0
for file in "$out"/bin/* "$out"/lib/*; do
    files=$((files + 1))
    needed=$(LD_LIBRARY_PATH=$out/lib ldd "$file")
    strangers=$(sed -n 's/^\s*\(\S*\) => \(.*\) (0x.*/\1 \2/p; /not found/p' <<<"$needed" |
        grep -vE "^\S+ $out/lib/|^(libc|libm|libdl|libpthread|librt|libresolv)\.so" || true)
    if [ -n "$strangers" ]; then
        printf '%s needs what is not in the bundle:\n%s\n' "$file" "$strangers" >&2
        exit 1
    fi
    if readelf -d "$file" | grep -E 'RPATH|RUNPATH' >&2; then
        echo "$file names a folder of this machine" >&2
        exit 1
    fi
done
if [ $files -lt 20 ]; then
    echo "only $files files were looked at" >&2
    exit 1
fi

# What it needs is said, and is no more than its files name.
glibc=$(sed -n 's/^glibc \([0-9.]*\) or newer, x86-64$/\1/p' "$out/BUNDLE")
if [ -z "$glibc" ] || ! grep -qE '^NVIDIA driver [0-9]{3} or newer \(CUDA [0-9.]+\)$' "$out/BUNDLE"; then
    cat "$out/BUNDLE" >&2
    echo "it does not say what it needs" >&2
    exit 1
fi
objdump -T "$out"/bin/* >"$out/symbols"
grep -qF "GLIBC_$glibc" "$out/symbols" || { echo "nothing in it needs glibc $glibc" >&2 && exit 1; }
rm "$out/symbols"

# A folder in the way of the driver, should there be one here.
none=$(mktemp -d)
trap 'rm -rf "$none"' EXIT
printf 'not a library' >"$none/libcuda.so.1"
code=0
said=$(LD_LIBRARY_PATH=$none "$out/run.sh" --out "$out/results" 2>&1) || code=$?
if [ $code -ne 77 ] || ! grep -q 'no GPU: .' <<<"$said" || [ -e "$out/results" ]; then
    printf 'without a driver run.sh ended with %s and said: %s\n' "$code" "$said" >&2
    exit 1
fi
echo "check-gpu-bundle: $files files, $((size_kib / 1024)) MiB"

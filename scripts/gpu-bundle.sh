#!/bin/bash
# Makes a folder that holds all that the GPU suite needs: programs, libraries, device code, tests and
# benchmarks. It runs on an x86-64 Linux machine with an NVIDIA driver and a C library that are new
# enough (BUNDLE in it says how new): no network, no compiler, no packages.
#   gpu-bundle.sh [OUT_DIR]   default: build/gpu-bundle; an earlier bundle there is replaced
#   GPUD_BUILD=DIR            take what was built there instead of building (preset release)
# Then, on that machine: OUT_DIR/run.sh [--quick] [--out DIR]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/gpu-bundle}
limit_kib=$((60 * 1024))

if [ -z "${GPUD_BUILD:-}" ]; then
    cd "$root"
    command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
    cmake --preset release -DBUILD_TESTING=ON -DGPUD_CUDA_ARCHS=all
    cmake --build --preset release --parallel "$(nproc)"
    GPUD_BUILD=$root/build/release
fi
build=$(cd "$GPUD_BUILD" && pwd)

programs=(
    bin/gpud bin/gpud-launcher bin/gpud-worker bin/gpud-compile bin/gpud-monitor bin/gpuctl
    bin/gpud-demo bin/example_export
    gpu/gpu-probe gpu/gpu-record gpu/gpu-direct gpu/gpu-system gpu/gpu-kernels gpu/gpu-libraries gpu/gpu-storm
    tests/contract_cuda tests/contract_cuda_plain
    bin/bench_inprocess bin/bench_overlap bin/bench_coldstart bin/bench_bandwidth bin/bench_frames
    bin/bench_writes
)
for file in "${programs[@]}" gpu/gpu-compile gpu/kernels.fatbin bin/bench_kernels.fatbin; do
    if [ ! -f "$build/$file" ]; then
        echo "gpu-bundle: $build has no $file: it needs the CUDA toolkit (headers and nvcc) and the tests" >&2
        exit 1
    fi
done
if [ -e "$out" ] && [ ! -f "$out/BUNDLE" ]; then
    echo "gpu-bundle: $out is there and is no bundle: name another folder" >&2
    exit 1
fi
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
out=$(cd "$out" && pwd)

# Libraries that come with every system or with the driver are not taken along.
of_the_system() {
    case ${1##*/} in
    linux-vdso.so* | ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | \
        libresolv.so* | libutil.so* | libnsl.so* | libcuda.so* | libnvidia-*) return 0 ;;
    *) return 1 ;;
    esac
}

for file in "${programs[@]}"; do
    cp "$build/$file" "$out/bin/"
done
missing=$(ldd "$out"/bin/* 2>&1 | grep 'not found' || true)
if [ -n "$missing" ]; then
    printf 'gpu-bundle: libraries are missing here:\n%s\n' "$missing" >&2
    exit 1
fi
ldd "$out"/bin/* | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r library; do
    of_the_system "$library" || cp -L "$library" "$out/lib/"
done
cp "$build/tests/libstorm-heap.so" "$out/lib/"
[ ! -f "$build/lib/libgpud-cub.so" ] || cp "$build/lib/libgpud-cub.so" "$out/lib/"
strip "$out"/bin/* "$out"/lib/*
# Where it was built is of no use elsewhere: run.sh names the folder of libraries.
for file in "$out"/bin/* "$out"/lib/*; do
    printf 'file(RPATH_REMOVE FILE "%s")\n' "$file"
done >"$out/rpath.cmake"
cmake -P "$out/rpath.cmake"
rm "$out/rpath.cmake"

# The C library that these files need: the newest version that they name.
glibc_of() { objdump -T "$@" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d _ -f 2; }
others=()
for file in "$out"/bin/* "$out"/lib/*; do
    [ "${file##*/}" = libgpud-cub.so ] || others+=("$file")
done
needs=$(LD_LIBRARY_PATH=$out/lib "$out/bin/gpu-probe" --needs)

cp "$build/gpu/kernels.fatbin" "$build/bin/bench_kernels.fatbin" "$out/"
cp "$root/tests/gpu/run.sh" "$out/run.sh"
# programs as one finds them, by both compilers; where one of them is not here run.sh says so
code=0
"$root/tests/gpu/cu/compile.sh" "$build" "$root" "$build/gpu/cu" || code=$?
[ $code -eq 0 ] || [ $code -eq 77 ] || exit $code
if [ $code -eq 0 ]; then
    mkdir "$out/cu"
    cp "$build"/gpu/cu/*.nvcc "$build"/gpu/cu/*.nvrtc "$out/cu/"
fi
# what `gpuctl demo` looks for by itself (python-matplotlib-data)
photograph=/usr/share/matplotlib/mpl-data/sample_data/grace_hopper.jpg
[ ! -f "$photograph" ] || cp "$photograph" "$out/photograph.jpg"
cp "$root/docs/gpu/README.md" "$root/LICENSE" "$out/"
{
    echo "gpud GPU suite, made $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    LD_LIBRARY_PATH=$out/lib "$out/bin/gpud" --version | head -n 1
    echo "glibc $(glibc_of "${others[@]}") or newer, x86-64"
    [ ! -f "$out/lib/libgpud-cub.so" ] || echo "CUB: glibc $(glibc_of "$out/lib/libgpud-cub.so") or newer, else it is not used"
    echo "NVIDIA driver $(sed -n 's/^needs_driver=//p' <<<"$needs") or newer ($(sed -n 's/^built_for=//p' <<<"$needs"))"
} >"$out/BUNDLE"

size_kib=$(du -sk "$out" | cut -f 1)
if [ "$size_kib" -gt $limit_kib ]; then
    echo "gpu-bundle: $((size_kib / 1024)) MiB are more than $((limit_kib / 1024))" >&2
    exit 1
fi
echo "$out: $((size_kib / 1024)) MiB; run.sh runs it"

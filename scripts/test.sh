#!/bin/bash
# Installs what is missing, builds and tests. Ends with ctest's summary of every stage.
#   scripts/test.sh              preset dev: every unit, contract and system test
#   scripts/test.sh --all        also the slow checks of the source, the demo, Debian's packages, asan, tsan and 60 s
#                                of fuzzing (what CI runs); asan leaves out what repeats much
#   scripts/test.sh STAGE...     only these: demo package dev full asan tsan fuzz; full is dev and the slow checks,
#                                package builds Debian's packages and asks lintian
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

fuzz_seconds=${GPUD_FUZZ_SECONDS:-60}
jobs=$(nproc)

stages=()
for arg in "$@"; do
    case $arg in
    --all) stages+=(demo package full asan tsan fuzz) ;;
    demo | package | dev | full | asan | tsan | fuzz) stages+=("$arg") ;;
    *)
        sed -n '2,7s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
done
[ ${#stages[@]} -gt 0 ] || stages=(dev)

scripts/deps.sh build test || exit 1
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Which of the stages this is, and the minutes since the first began.
progress() {
    printf '== stage %d of %d, %d:%02d: %s\n' "$number" ${#stages[@]} $((SECONDS / 60)) $((SECONDS % 60)) "$1"
}

# Under ASan these cost minutes and run little code that no other test runs: the same tests over
# rings, the same contract in other modes, compilers of the driver, tests that compile kernels most of
# their time, models of the test itself. The nightly part asan has them.
repeats='^(test_kernels_(opencl|host)|storm|churn|examples|compat_client|client_sim|torture_today|'
repeats+='worker_bulk_test|contract_cuda_(ats|plain)|contract_opencl_buffers|test_cuda_files|'
repeats+='test_opencl_compile|test_system_(arguments|dump|record|domains|drain|builtins|kernels|turns|readonly|'
repeats+='remote|libraries|gpuctl|cuda_modules|.*_ring))$'
whole=${GPUD_ASAN_WHOLE:-no}

# Sanitizers look at every test that runs project code; the checks of the source need no second run,
# and the numerics of kernels that the driver compiles are not instrumented: they would only be slow.
stage_filter() {
    case $1 in
    dev) echo "-LE ^slow$" ;;
    asan)
        if [ "$whole" = yes ]; then
            echo "-LE ^checks$ -E ^(test_kernels_opencl|storm)$"
        else
            echo "-LE ^checks$ -E $repeats"
        fi
        ;;
    tsan) echo "-L ^threads$" ;;
    fuzz) echo "-L ^fuzz$" ;;
    *) echo "" ;;
    esac
}

stage_preset() { if [ "$1" = full ]; then echo dev; else echo "$1"; fi; }

stage_target() {
    case $1 in
    tsan) echo tests_threads ;;
    fuzz) echo tests_fuzz ;;
    *) echo all ;;
    esac
}

# What a newcomer does first, with device code for one kind of GPU: packages have all.
run_demo() {
    progress "demo"
    cmake --preset release -DBUILD_TESTING=OFF -DGPUD_CUDA_ARCHS=90 || return 1
    cmake --build --preset release --parallel "$jobs" || return 1
    GPUD_BUILD=build/release scripts/demo.sh || return 1
    echo "100% tests passed: the demo" >"$logs/demo"
}

run_package() {
    progress "package"
    if ! scripts/deps.sh build package; then
        echo "No tests were found: what builds and checks Debian's packages cannot be installed here" >"$logs/package"
        return
    fi
    scripts/package-deb.sh --cuda-archs none || return 1
    echo "100% tests passed: packages and lintian" >"$logs/package"
}

run_stage() {
    local stage=$1
    if [ "$stage" = package ]; then
        run_package
        return
    fi
    if [ "$stage" = demo ]; then
        run_demo
        return
    fi
    local preset filter none=ignore beside=$((jobs + 1))
    preset=$(stage_preset "$stage")
    progress "$stage: configure"
    cmake --preset "$preset" || return 1
    progress "$stage: build"
    cmake --build --preset "$preset" --parallel "$jobs" --target "$(stage_target "$stage")" || return 1
    progress "$stage: test"
    [ "$preset" = dev ] && none=error
    read -ra filter <<<"$(stage_filter "$stage")"
    # More tests than there are processors: most wait for a daemon half of their time; fuzzers do not.
    [ "$stage" = fuzz ] || beside=$((2 * jobs + 1))
    GPUD_FUZZ_SECONDS=$fuzz_seconds ctest --preset "$preset" --parallel "$beside" \
        --no-tests="$none" ${filter[@]+"${filter[@]}"} 2>&1 | tee "$logs/$stage"
}

# Of a log of ctest: each test that failed, how its output begins and ends, and what Check found wrong.
failures() {
    awk '
        function flush(i) {
            for (i = 1; i <= n; i++) {
                if (i <= 8 || i > n - 8 || line[i] ~ /:[FE]:/) {
                    print "    " substr(line[i], 1, 400)
                }
            }
            n = 0
        }
        /^ *[0-9]+\/[0-9]+ Test +#[0-9]+:/ {
            flush()
            inside = /\*\*\*/
            if (inside) { print }
            next
        }
        /^ +Start +[0-9]+: |^[0-9]+% tests passed/ { flush(); inside = 0 }
        inside && NF > 0 { line[++n] = $0 }
        END { flush() }' "$1"
}

failed=()
number=0
for stage in "${stages[@]}"; do
    started=$SECONDS
    number=$((number + 1))
    run_stage "$stage" || failed+=("$stage")
    echo "== $stage: $((SECONDS - started)) s"
done

for stage in "${stages[@]}"; do
    echo
    echo "== $stage"
    if [ -f "$logs/$stage" ]; then
        grep -E -A100 '^[0-9]+% tests passed|^No tests were found' "$logs/$stage"
        failures "$logs/$stage"
    else
        echo "did not build"
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}" >&2
    exit 1
fi

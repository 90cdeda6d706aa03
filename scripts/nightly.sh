#!/bin/bash
# What takes too long for every change. Ends with a table.
#   scripts/nightly.sh             all of it
#   scripts/nightly.sh PART...     only these parts:
#     storms     kills of workers, of fronts, and of one tenant's workers, GPUD_STORM_SECONDS (20) each
#     storm      all mishaps at once, GPUD_STORM_MINUTES (30) on each device; its seed is the date
#     release    preset release with all tests, device code for all GPUs, and the demo
#     asan       all tests under ASan that scripts/test.sh leaves out as well
#     mutants    all defences switched off, one at a time
#     static     the analyzer, as far as it can follow: 15 minutes
#     fuzz       each target, GPUD_FUZZ_SECONDS (600)
#     decoder    GPUD_DECODER_MESSAGES (100000000) messages: 10 minutes
#     soak       10^8 operations of the pool
#     property   142 runs of GPUD_POOL_STEPS (710000) against models of the pool, by GPUD_POOL_SEED
#                (the date): 8 minutes
#     churn      200,000 connections to the listener, and to the daemon; GPUD_CHURN_JOBS (1000000) jobs of
#                clients that leave or crash
#     sim        10,000 worlds around the front, and as many with libgpud in them, at most
#                GPUD_SIM_SECONDS (1800) each: 10 and 5 minutes; the date gives the seeds
#     worlds     100,000 worlds around the worker, at most GPUD_WORLDS_SECONDS (3600): 35 minutes
#     packages   Debian's packages in a clean root: installed, used, upgraded, purged; needs the mirror
#     torture    each call of each process fails once: 40,000 runs, two to three hours
# The minutes are those of two processors that do nothing else.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

all=(storms storm release asan mutants static fuzz decoder soak property churn sim worlds packages torture)
parts=()
for arg in "$@"; do
    case " ${all[*]} " in
    *" $arg "*) parts+=("$arg") ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")

scripts/deps.sh build test || exit 1
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache

# Workers killed every 250 ms, those of one tenant beside others as well, and fronts every 200 ms and a
# start, on the simulated device and on OpenCL; the clients check every answer.
storms() {
    cmake --preset dev >/dev/null &&
        cmake --build --preset dev --target test_system_workers test_system_front \
            test_system_domains >/dev/null || return 1
    local program failed=0
    for program in workers front domains; do
        GPUD_SYSTEM_SECONDS=${GPUD_STORM_SECONDS:-20} CK_DEFAULT_TIMEOUT=600 \
            CK_INCLUDE_TAGS=storm "build/dev/tests/test_system_$program" || failed=1
    done
    return "$failed"
}

# All mishaps at once, for long (tests/storm).
storm() {
    local device failed=0
    for device in sim opencl; do
        scripts/storm.sh "${GPUD_STORM_MINUTES:-30}" --device "$device" || failed=1
    done
    return "$failed"
}

release() {
    cmake --preset release -DBUILD_TESTING=ON -DGPUD_CUDA_ARCHS=all >/dev/null &&
        cmake --build --preset release >/dev/null || return 1
    GPUD_BUILD=build/release scripts/demo.sh
}

asan() {
    GPUD_ASAN_WHOLE=yes scripts/test.sh asan
}

static() {
    cmake --preset dev >/dev/null && cmake --build --preset dev >/dev/null || return 1
    scripts/check-static --deep build/dev
}

# Memory taken by the pool must not creep up (bench/pool/soak.c).
soak() {
    cmake --preset dev >/dev/null && cmake --build --preset dev --target bench_pool >/dev/null || return 1
    build/dev/bin/bench_pool --soak 100000000
}

# Random requests, pending frees, guarantees, moves and failures, against a model and against a shadow
# of the memory: 7.5 minutes of processor time in two processes, given up after an hour. Then
# guarantees through the worker, 2,400 times.
property() (
    cmake --preset dev >/dev/null &&
        cmake --build --preset dev --target test_pool_property test_pool_shadow worker_promise_test >/dev/null || exit 1
    export GPUD_POOL_STEPS=${GPUD_POOL_STEPS:-710000} GPUD_POOL_SEED=${GPUD_POOL_SEED:-$(date +%Y%m%d)}
    export CK_TIMEOUT_MULTIPLIER=10
    echo "GPUD_POOL_SEED=$GPUD_POOL_SEED GPUD_POOL_STEPS=$GPUD_POOL_STEPS"
    timeout 3600 build/dev/tests/test_pool_shadow &
    local other=$! failed=0
    timeout 3600 build/dev/tests/test_pool_property || failed=1
    wait "$other" || failed=1
    GPUD_PROMISE_SEED=$GPUD_POOL_SEED GPUD_PROMISE_ROUNDS=600 timeout 3600 build/dev/tests/worker_promise_test || failed=1
    exit "$failed"
)

# Connections and clients that come and go must leave no descriptor and no memory behind.
churn() {
    cmake --preset dev >/dev/null &&
        cmake --build --preset dev --target front_listener_churn_test test_fault_connections churn \
            >/dev/null || return 1
    GPUD_CHURN=${GPUD_CHURN:-200000} build/dev/tests/front_listener_churn_test &&
        GPUD_CHURN=${GPUD_CHURN:-200000} CK_RUN_CASE=nothing_is_left_of_connections \
            build/dev/tests/test_fault_connections &&
        build/dev/tests/test_churn --jobs "${GPUD_CHURN_JOBS:-1000000}"
}

# 10^8 random and mutated messages, in as many processes as there are processors. Findings are left
# in build/decoder.
decoder() (
    cmake --preset fuzz >/dev/null && cmake --build --preset fuzz --target fuzz_proto >/dev/null || exit 1
    rm -rf build/decoder && mkdir -p build/decoder || exit 1
    lanes=$(nproc) failed=0 pids=()
    for ((i = 0; i < lanes; i++)); do
        mkdir -p "build/decoder/corpus-$i" || exit 1
        build/fuzz/tests/fuzz_proto -runs=$((${GPUD_DECODER_MESSAGES:-100000000} / lanes)) -print_final_stats=1 \
            -seed="$(date +%Y%m%d)$i" -artifact_prefix=build/decoder/ "build/decoder/corpus-$i" \
            tests/fuzz/corpus/proto >"build/decoder/log-$i" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=1
    done
    tail -qn 5 build/decoder/log-*
    exit "$failed"
)

# Worlds (tests/sim). Courses that break a rule are left, shortened, in build/sim.
sim() {
    cmake --preset dev >/dev/null &&
        cmake --build --preset dev --target front_sim client_sim >/dev/null || return 1
    local first program failed=0
    first=$(date +%Y%m%d)0000
    for program in front client; do
        mkdir -p "build/sim/$program"
        "build/dev/tests/${program}_sim" --seeds "$first-$((first + 9999))" --lanes "$(nproc)" \
            --seconds "${GPUD_SIM_SECONDS:-1800}" --keep "build/sim/$program" || failed=1
    done
    return "$failed"
}

# Worlds around the worker (tests/sim/worker): 40 ms of a processor each.
worlds() {
    cmake --preset dev >/dev/null && cmake --build --preset dev --target worker_sim >/dev/null || return 1
    local first
    first=$(date +%y%m%d)00000
    mkdir -p build/sim/worker
    build/dev/tests/worker_sim --seeds "$first-$((first + 99999))" --lanes "$(nproc)" \
        --seconds "${GPUD_WORLDS_SECONDS:-3600}" --keep build/sim/worker
}

# torture_lanes NAME LANES OPTION...: all runs that the options choose, in so many processes.
torture_lanes() {
    local name=$1 lanes=$2 lane failed=0 pids=()
    shift 2
    for ((lane = 0; lane < lanes; lane++)); do
        build/dev/tests/test_torture "$@" --slice "$lane/$lanes" >"build/torture/$name-$lane" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || failed=1
    done
    return "$failed"
}

# The n-th call fails, for every n (tests/torture): 30,000 runs at least, of which the logs in
# build/torture tell. Most of a run is waiting, so there are several for each processor, but for the
# compiler, which computes.
torture() {
    cmake --preset dev >/dev/null && cmake --build --preset dev --target torture >/dev/null || return 1
    local failed=0 runs lanes
    lanes=$(nproc)
    rm -rf build/torture && mkdir -p build/torture || return 1
    torture_lanes sim $((4 * lanes)) --device sim || failed=1
    torture_lanes cuda $((4 * lanes)) --device cuda --process worker || failed=1
    torture_lanes compiler "$lanes" --device opencl --act module --process compiler || failed=1
    build/dev/tests/test_torture --device opencl --act module --slice today/5 \
        >build/torture/opencl 2>&1 || failed=1
    grep -hE '^(FAILED|-- repeat|torture: ([0-9]+ runs,|repeat))' build/torture/*
    runs=$(sed -n 's/^torture: \([0-9]*\) runs, .*/\1/p' build/torture/* | awk '{n += $1} END {print n + 0}')
    echo "torture: $runs runs in which the call was reached"
    [ "$runs" -ge 30000 ] || failed=1
    return "$failed"
}

run_part() {
    case $1 in
    storms) storms ;;
    storm) storm ;;
    release) release ;;
    asan) asan ;;
    mutants) scripts/mutants.sh ;;
    static) static ;;
    fuzz) GPUD_FUZZ_SECONDS=${GPUD_FUZZ_SECONDS:-600} scripts/test.sh fuzz ;;
    decoder) decoder ;;
    soak) soak ;;
    property) property ;;
    churn) churn ;;
    sim) sim ;;
    worlds) worlds ;;
    packages) scripts/package-try.sh ;;
    torture) torture ;;
    esac
}

told=()
status=0
for part in "${parts[@]}"; do
    echo "== $part"
    started=$SECONDS
    if run_part "$part"; then
        told+=("passed  $part  $((SECONDS - started)) s")
    else
        told+=("FAILED  $part  $((SECONDS - started)) s")
        status=1
    fi
done
printf '%s\n' "${told[@]}"
exit "$status"

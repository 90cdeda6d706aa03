#!/bin/bash
# What takes too long for every change: storms of 20 s, all mutants, longer fuzzing,
# 10^8 operations of the pool, 10^8 against models of it, 200,000 connections, 10,000 simulated
# worlds, others each night, every call that fails once. Ends with a table.
#   scripts/nightly.sh             all of it
#   scripts/nightly.sh PART...     only these: storms storm mutants fuzz soak property churn sim torture
# GPUD_STORM_SECONDS (20), GPUD_FUZZ_SECONDS (600), GPUD_SIM_SECONDS (1800): how long.
# GPUD_STORM_MINUTES (30): of `storm`, on each device; its seed is the date.
# GPUD_POOL_STEPS (710000): of each of the 142 runs of `property`. GPUD_POOL_SEED (the date): its
# runs differ each night.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

parts=()
for arg in "$@"; do
    case $arg in
    storms | storm | mutants | fuzz | soak | property | churn | sim | torture) parts+=("$arg") ;;
    *)
        sed -n '2,10s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=(storms storm mutants fuzz soak property churn sim torture)

scripts/deps.sh build test || exit 1
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache

# Workers killed every 250 ms and fronts every 200 ms and a start, on the simulated device and on
# OpenCL; the clients check every answer.
storms() {
    cmake --preset dev >/dev/null &&
        cmake --build --preset dev --target test_system_workers test_system_front >/dev/null || return 1
    local program failed=0
    for program in workers front; do
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

# Connections that come and go must leave no descriptor and no memory behind.
churn() {
    cmake --preset dev >/dev/null &&
        cmake --build --preset dev --target front_listener_churn_test >/dev/null || return 1
    GPUD_CHURN=${GPUD_CHURN:-200000} build/dev/tests/front_listener_churn_test
}

# Worlds around the front (tests/sim). The date gives the first seed. Courses that break a rule are
# left, shortened, in build/sim.
sim() {
    cmake --preset dev >/dev/null && cmake --build --preset dev --target front_sim >/dev/null || return 1
    mkdir -p build/sim
    local first
    first=$(date +%Y%m%d)0000
    build/dev/tests/front_sim --seeds "$first-$((first + 9999))" --lanes "$(nproc)" \
        --seconds "${GPUD_SIM_SECONDS:-1800}" --keep build/sim
}

# Each call of each process fails alone, and with those that follow (tests/torture).
torture() {
    cmake --preset dev >/dev/null && cmake --build --preset dev --target torture >/dev/null || return 1
    local failed=0
    build/dev/tests/test_torture --device sim || failed=1
    build/dev/tests/test_torture --device cuda --process worker || failed=1
    build/dev/tests/test_torture --device opencl --act module --slice today/20 || failed=1
    return "$failed"
}

run_part() {
    case $1 in
    storms) storms ;;
    storm) storm ;;
    mutants) scripts/mutants.sh ;;
    soak) soak ;;
    property) property ;;
    churn) churn ;;
    sim) sim ;;
    torture) torture ;;
    fuzz) GPUD_FUZZ_SECONDS=${GPUD_FUZZ_SECONDS:-600} scripts/test.sh fuzz ;;
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

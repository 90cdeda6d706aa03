#!/bin/bash
# Runs the GPU suite in the folder it lies in: what gpud promises of CUDA, checked and measured.
#   run.sh [--quick] [--out DIR] [ITEM]...
#   --quick     fewer repetitions
#   --out DIR   where results.json, results.md and the logs go; default: results-DATE beside here,
#               or below /tmp where that cannot be written
#   ITEM        only these: contract kernels libraries faults direct speed parts bench demo
# Exit status: 0 all passed or skipped with a reason, 1 something failed, 77 there is no GPU.
# docs/gpu/README.md says what each line means. Only what ran is reported.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# ours first; the caller's stay what they are when we go elsewhere
folders=$here/lib
while IFS= read -r -d : folder; do
    [ -z "$folder" ] || folders+=:$(cd "$folder" 2>/dev/null && pwd)
done <<<"${LD_LIBRARY_PATH:-}:"
export LD_LIBRARY_PATH=${folders%:}

usage() { sed -n '2,9s/^# \{0,1\}//p' "$here/run.sh"; }

out=
items=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) export GPU_QUICK=1 ;;
    --out)
        out=${2:?--out needs a folder}
        shift
        ;;
    --help)
        usage
        exit 0
        ;;
    contract | kernels | libraries | faults | direct | speed | parts | bench | demo) items+=("$1") ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done
[ ${#items[@]} -gt 0 ] || items=(contract kernels libraries faults direct speed parts bench demo)

# ---- what there is -------------------------------------------------------------------------------

probed=$("$here/bin/gpu-probe")
code=$?
if [ $code -eq 77 ]; then
    echo "gpu suite: skipped, nothing was run: see above" >&2
    exit 77
elif [ $code -ne 0 ]; then
    echo "gpu suite: gpu-probe ended with $code: see above; nothing was run" >&2
    exit 1
fi
told() { sed -n "s/^$1=//p" <<<"$probed"; }

if [ -z "$out" ]; then
    out=$here/results-$(date -u +%Y%m%d-%H%M%S)
    mkdir "$out" 2>/dev/null || out=$(mktemp -d /tmp/gpud-gpu-results-XXXXXX)
fi
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
rm -f "$out"/results.*
export GPU_RECORD=$out GPU_KERNELS=$here/kernels.fatbin BENCH_KERNELS=$here/bench_kernels.fatbin
[ ! -f "$here/photograph.jpg" ] || export GPU_PICTURE=$here/photograph.jpg
: >"$out/results.jsonl"
: >"$out/results.rows"
scratch=$(mktemp -d /tmp/gpud-gpu-XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
ln -s "$here/bin" "$scratch/bin"
mkdir "$scratch/cache" "$scratch/bench"
export BENCH_CACHE_DIR=$scratch/bench
cd "$scratch" || exit 1

what="a GPU"
if [ "$(told double)" = 1 ]; then
    what="THE DRIVER'S DOUBLE: no GPU took part, no figure says anything about one"
    export GPU_DOUBLE=1
    # the double executes no device code: what the suite's kernels do is told to it
    export CUDA_FAKE="${CUDA_FAKE:-unknown=noop;entry.null_store@1+=fault:700;entry.misaligned@1+=fault:716;entry.device_assert@1+=fault:710;entry.device_trap@1+=fault:719;entry.bad_jump@1+=fault:718;entry.shared_out@1+=fault:719;entry.endless@1+=stall}"
fi

# ---- items ---------------------------------------------------------------------------------------

record() { "$here/bin/gpu-record" "$@"; }

# part NAME SECONDS COMMAND...: its records are its own; an end that is not 0 is one more, failed.
part() {
    local name=$1 limit=$2 code log
    shift 2
    log=$out/$name.log
    timeout -k 10 "$limit" "$@" 2>"$log.err" | tee "$log"
    code=${PIPESTATUS[0]}
    cat "$log.err" >>"$log"
    rm -f "$log.err"
    case $code in
    0) ;;
    124 | 137) record "$name" failed "was ended after $limit s; $name.log" ;;
    *) record "$name" failed "ended with $code: $(grep -v '^[0-9]*%:' "$log" | grep -E ':[EF]:|error|cu[A-Z]' | tail -n 1 | cut -c 1-300); $name.log" ;;
    esac
}

# check NAME SECONDS COMMAND...: a program of Check's: one record, by its last line.
check() {
    local name=$1 limit=$2 code log checks failures errors line
    shift 2
    log=$out/${name//[^a-z0-9]/-}.log
    local begin=$SECONDS
    timeout -k 10 "$limit" "$@" >"$log" 2>&1
    code=$?
    line=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" | tail -n 1)
    read -r checks failures errors <<<"$(tr -cs '0-9\n' ' ' <<<"${line#*%}")"
    local figures=(checks "${checks:-0}" "" "took" $((SECONDS - begin)) s)
    if [ $code -eq 0 ] && [ "${checks:-0}" -gt 0 ]; then
        record "$name" passed "" "${figures[@]}"
    elif [ $code -eq 77 ]; then
        record "$name" failed "it found no device, where the probe found one: $(tail -n 1 "$log")"
    else
        record "$name" failed "status $code, ${failures:-?} failures, ${errors:-?} errors: $(grep -m 1 -E ':[EF]:' "$log" | cut -c 1-300); ${log##*/}" "${figures[@]}"
    fi
}

run_contract() {
    check "contract" 600 "$here/bin/contract_cuda"
    check "contract, vmm=off" 600 "$here/bin/contract_cuda_plain"
}

run_kernels() { check "kernels" 900 "$here/bin/gpu-kernels"; }

# What no library serves runs as in "kernels"; how many calls were served stands in the log.
run_libraries() {
    if [ "$(told double)" = 1 ]; then
        record "libraries" skipped "there are none that compute on the double"
    else
        check "libraries" 900 "$here/bin/gpu-libraries"
    fi
}

run_faults() { part faults 900 env CK_DEFAULT_TIMEOUT=300 "$here/bin/gpu-system" faults; }

run_direct() {
    local item
    for item in overlap copies turns pages pool; do
        part "$item" 300 "$here/bin/gpu-direct" "$item"
    done
}

run_speed() { part speed 600 env CK_DEFAULT_TIMEOUT=300 "$here/bin/gpu-system" speed; }

run_parts() { part parts 300 env CK_DEFAULT_TIMEOUT=300 "$here/bin/gpu-system" parts; }

# told_by NAME PART CASE FIGURE WHAT: a number of a benchmark's own report; nothing if it is not there.
told_by() {
    sed -n "s/.*\"part\": \"$2\", \"case\": \"$3\", \"figure\": \"$4\".*\"$5\": \([-+.e0-9]*\).*/\1/p" \
        "$out/bench_$1.json" | head -n 1
}

# bench NAME SECONDS ROW...: one of gpud's benchmarks on CUDA, against the driver in one process. A row
# is "what it is called|part|case|figure|value or ratio|unit and target".
bench() {
    local name=$1 limit=$2 code row label part case figure what unit value short=()
    shift 2
    [ "${GPU_QUICK:-0}" != 1 ] || short=(--repeat 3)
    timeout -k 10 "$limit" "$here/bin/bench_$name" --backend cuda --only "${only:-}" --json "${short[@]}" \
        >"$out/bench_$name.json" 2>"$out/bench_$name.log"
    code=$?
    if [ $code -ne 0 ]; then
        record "bench $name" failed "ended with $code: $(tail -n 1 "$out/bench_$name.log" | cut -c 1-300); bench_$name.log"
        return
    fi
    local figures=()
    for row in "$@"; do
        IFS='|' read -r label part case figure what unit <<<"$row"
        value=$(told_by "$name" "$part" "$case" "$figure" "$what")
        if [ -z "$value" ]; then
            record "bench $name" failed "'$label' is not in bench_$name.json"
            return
        fi
        figures+=("$label" "$value" "$unit")
    done
    record "bench $name" passed "all of it: bench_$name.json" "${figures[@]}"
}

run_bench() {
    local ring="unpinned, ring lane" only
    bench inprocess 400 "empty kernel, gpud adds|$ring|empty kernel, gpud|added|value|us" \
        "saxpy 1M, 8 at once, time|$ring|saxpy 1M, gpud|8 at once|ratio|x" \
        "five steps, one at a time, time|$ring|five steps 256K, gpud|one at a time|ratio|x"
    bench coldstart 300 "first result, gpud|first result|gpud|time|value|ms" \
        "saved against a context of its own|first result|gpud|saved|value|%>=95"
    bench bandwidth 400 "64 MiB in, arena, rate|unpinned|64 MiB, gpud, arena|in|ratio|x>=0.95" \
        "64 MiB out, arena, rate|unpinned|64 MiB, gpud, arena|out|ratio|x>=0.95" \
        "64 MiB in, plain memory, rate|unpinned|64 MiB, gpud|in|ratio|x" \
        "64 MiB out, plain memory, rate|unpinned|64 MiB, gpud|out|ratio|x"
    only="gpud's"
    bench overlap 300 "all at once against step by step|gpud's device|all at once|throughput|value|x>=2.5"
    bench writes 300 "64 neighbours in one job, gain|gpud's device|adjacent, one job|gain|value|x>=10" \
        "64 scattered in one job, gain|gpud's device|scattered, one job|gain|value|x>=1.9"
    only=
    bench frames 400 "p50|$ring|gpud|p50|value|ms" "p99|$ring|gpud|p99|value|ms<=5"
}

run_demo() { part demo 300 "$here/bin/gpu-system" demo; }

date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
printf 'gpu suite on %s\n%s, %s; built for %s; %s\n\n' "$what" "$(told device0)" "$(told cuda)" \
    "$(told built_for)" "$(told kernel_driver)"
for item in "${items[@]}"; do
    "run_$item"
done

# ---- the report ----------------------------------------------------------------------------------

quote() { sed -e 's/[\\"]/\\&/g' -e 's/[^ -~]/?/g' <<<"$1"; }
{
    printf '{"suite":"gpud gpu suite","date":"%s","driver_double":%s,\n' "$date" \
        "$([ "$(told double)" = 1 ] && echo true || echo false)"
    printf '"device":"%s","arch":"%s","devices":%s,"driver":"%s","kernel_driver":"%s",' \
        "$(quote "$(told device)")" "$(told arch)" "$(told devices)" "$(told cuda)" \
        "$(quote "$(told kernel_driver)")"
    printf '"library":"%s","nvrtc":"%s",\n' "$(quote "$(told library)")" "$(quote "$(told nvrtc)")"
    printf '"build":"%s","built_for":"%s","quick":%s,"items":"%s","host":"%s",\n' \
        "$(quote "$("$here/bin/gpud" --version | head -n 1)")" "$(told built_for)" \
        "$([ "${GPU_QUICK:-0}" = 1 ] && echo true || echo false)" "${items[*]}" \
        "$(quote "$(uname -srm), $(nproc) processors")"
    printf '"results":[\n'
    sed '$!s/$/,/' "$out/results.jsonl"
    printf ']}\n'
} >"$out/results.json"
{
    printf '# GPU suite: %s\n\n' "$(told device)"
    [ "$(told double)" = 1 ] && printf '**%s.**\n\n' "$what"
    printf -- '- date: %s\n- device: %s\n- driver: %s; %s\n- built for: %s; %s\n- items: %s%s\n\n' "$date" \
        "$(told device0)" "$(told cuda)" "$(told kernel_driver)" "$(told built_for)" \
        "$("$here/bin/gpud" --version | head -n 1)" "${items[*]}" \
        "$([ "${GPU_QUICK:-0}" = 1 ] && echo ' (quick)')"
    printf '| item | state | what came out |\n|---|---|---|\n'
    cat "$out/results.rows"
} >"$out/results.md"

count() { grep -c "\"state\":\"$1\"" "$out/results.jsonl"; }
failed=$(count failed)
printf '\n%s passed, %s failed, %s skipped; %s\n' "$(count passed)" "$failed" "$(count skipped)" \
    "$out/results.json"
[ "$(told double)" = 1 ] && printf '%s\n' "$what"
[ "$failed" -eq 0 ]

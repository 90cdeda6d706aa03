#!/bin/bash
# Runs the GPU suite in the folder it lies in: what gpud promises of CUDA, checked and measured.
#   run.sh [--quick] [--budget SECONDS] [--out DIR] [--pack FILE] [ITEM]...
#   --quick     fewer repetitions
#   --budget S  ends within S seconds: what does not fit is skipped, and told so
#   --out DIR   where results.json, results.md and the logs go; default: results-DATE beside here,
#               or below /tmp where that cannot be written
#   --pack FILE all of these in one file too (tar; compressed where there is gzip)
#   ITEM        only these: contract kernels libraries faults direct speed parts bench demo
# Exit status: 0 all passed or skipped with a reason, 1 something failed, 77 there is no GPU.
# The report is written anew after each part of an item, so it is there whatever ends the suite.
# docs/gpu/README.md says what each line means. Only what ran is reported as passed or failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() { sed -n '2,12s/^# \{0,1\}//p' "$here/run.sh"; }

out=
pack=
budget=
items=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) export GPU_QUICK=1 ;;
    --out)
        out=${2:?--out needs a folder}
        shift
        ;;
    --pack)
        pack=${2:?--pack needs a file}
        shift
        ;;
    --budget)
        budget=${2:?--budget needs seconds}
        shift
        if [[ ! $budget =~ ^[1-9][0-9]{0,5}$ ]]; then
            echo "run.sh: --budget $budget: that is no number of seconds" >&2
            exit 2
        fi
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

# ---- where libraries are ---------------------------------------------------------------------------

# Ours first; the caller's stay what they are when we go elsewhere; then those that wheels brought.
folders=$here/lib
while IFS= read -r -d : folder; do
    [ -z "$folder" ] || folders+=:$(cd "$folder" 2>/dev/null && pwd)
done <<<"${LD_LIBRARY_PATH:-}:"

# Folders that a python may be installed in: the system's, the user's, and environments.
pythons() {
    local python
    for python in python3 python; do
        python=$(command -v "$python") && (cd "$(dirname "$python")/.." && pwd)
    done
    printf '%s\n' "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}" "${HOME:-}/.local" "${HOME:-}/.venv" /usr \
        /usr/local /opt/* /opt/*/.venv /opt/*/venv
}
wheels=
while IFS= read -r prefix; do
    for folder in "$prefix"/lib/python3*/{site,dist}-packages/nvidia/*/lib; do
        if [ -d "$folder" ] && [[ $folder = /* && :$wheels: != *":$folder:"* ]]; then
            wheels+=:$folder
        fi
    done
done < <(pythons)
export LD_LIBRARY_PATH=${folders%:}$wheels

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
if [ -n "$pack" ]; then
    folder=$(mkdir -p "$(dirname "$pack")" && cd "$(dirname "$pack")" && pwd) || exit 1
    pack=$folder/${pack##*/}
    command -v tar >/dev/null || { echo "run.sh: --pack needs tar" >&2 && exit 1; }
fi
rm -f "$out"/results.*
export GPU_RECORD=$out GPU_KERNELS=$here/kernels.fatbin BENCH_KERNELS=$here/bench_kernels.fatbin
[ ! -f "$here/photograph.jpg" ] || export GPU_PICTURE=$here/photograph.jpg
: >"$out/results.jsonl"
: >"$out/results.rows"
scratch=$(mktemp -d /tmp/gpud-gpu-XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
ln -s "$here/bin" "$scratch/bin"
mkdir "$scratch/cache" "$scratch/bench"
mkfifo "$scratch/lines"
export BENCH_CACHE_DIR=$scratch/bench
cd "$scratch" || exit 1

# A driver without persistence starts the device anew (seconds) whenever nobody has it open; most of
# what runs here is a process of its own. The device files alone are enough, and unlike a context
# they take no memory and nobody's turn. They are let go of when this script ends, however that is.
exec {held}> >(
    for file in /dev/nvidia[0-9]*; do
        # shellcheck disable=SC2034 # it only has to stay open
        [ ! -c "$file" ] || exec {device}<>"$file" || true
    done 2>/dev/null
    read -r _
)

what="a GPU"
if [ "$(told double)" = 1 ]; then
    what="THE DRIVER'S DOUBLE: no GPU took part, no figure says anything about one"
    export GPU_DOUBLE=1
    # the double executes no device code: what the suite's kernels do is told to it
    export CUDA_FAKE="${CUDA_FAKE:-unknown=noop;entry.null_store@1+=fault:700;entry.misaligned@1+=fault:716;entry.device_assert@1+=fault:710;entry.device_trap@1+=fault:719;entry.bad_jump@1+=fault:718;entry.shared_out@1+=fault:719;entry.endless@1+=stall}"
fi

# ---- items ---------------------------------------------------------------------------------------

record() { "$here/bin/gpu-record" "$@"; }

# Of the budget some seconds are kept for what does not end when asked, and for the report. No part
# takes more than half of what is left (a minute is never too much): one that hangs leaves time to
# the others.
kept=10
left() { echo $((budget - kept - SECONDS)); }

# allow NAME SECONDS: sets `limit`, and `cut` where it is less than asked for; fails, and the part is
# recorded, where no time is left.
allow() {
    local all share
    limit=$2
    cut=
    [ -n "$budget" ] || return 0
    all=$(left)
    if [ "$all" -lt 3 ]; then
        record "$1" skipped "out of time: nothing is left of the budget of $budget s"
        return 1
    fi
    share=$((all / 2 > 60 ? all / 2 : all < 60 ? all : 60))
    if [ $share -lt "$limit" ]; then
        limit=$share
        cut=1
    fi
}

# limited OUT ERR COMMAND...: for `limit` seconds, as a job of its own: a signal to this script need not
# wait until it ends. What it says is appended to these files. Sets `code`.
running=
limited() {
    began=$SECONDS
    local to=$1 err=$2
    shift 2
    timeout -k $((kept / 2)) "$limit" "$@" >>"$to" 2>>"$err" {held}>&- &
    running=$!
    wait $running
    code=$?
    running=
}

# late NAME LOG: was it ended for its time? Then that is recorded.
late() {
    [ $code -eq 124 ] || [ $code -eq 137 ] || return 1
    [ $((SECONDS - began)) -ge $((limit - 1)) ] || return 1 # killed by somebody else
    if [ -n "$cut" ]; then
        record "$1" skipped "out of time: was ended after $limit s, all that the budget of $budget s left it; $2"
    else
        record "$1" failed "was ended after $limit s; $2"
    fi
}

# part NAME SECONDS COMMAND...: its records are its own; an end that is not 0 is one more, failed.
part() {
    local name=$1 log teller
    allow "$@" || return
    doing=$name
    shift 2
    log=$out/$name.log
    tee "$log" <"$scratch/lines" &
    teller=$!
    limited "$scratch/lines" "$log.err" "$@"
    wait $teller
    cat "$log.err" >>"$log"
    rm -f "$log.err"
    if [ $code -ne 0 ] && ! late "$name" "$name.log"; then
        record "$name" failed "ended with $code: $(grep -v '^[0-9]*%:' "$log" | grep -E ':[EF]:|error|cu[A-Z]' | tail -n 1 | cut -c 1-300); $name.log"
    fi
    report false
}

# check NAME SECONDS COMMAND...: a program of Check's: one record, by its last line. Lines "served NAME
# COUNT" become figures; it is skipped if all of them count 0.
check() {
    local name=$1 log checks failures errors line by count served=0 absent=
    allow "$@" || return
    doing=$name
    shift 2
    log=$out/${name//[^a-z0-9]/-}.log
    local begin=$SECONDS
    rm -f "$log"
    limited "$log" "$log" "$@"
    line=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" | tail -n 1)
    read -r checks failures errors <<<"$(tr -cs '0-9\n' ' ' <<<"${line#*%}")"
    local figures=(checks "${checks:-0}" "" "took" $((SECONDS - begin)) s)
    while read -r _ by count; do
        figures+=("$by" "$count" calls)
        served=$((served + count))
        [ "$count" -gt 0 ] || absent+="${absent:+, }$by"
    done < <(grep -E '^served [a-z]+ [0-9]+$' "$log")
    if late "$name" "${log##*/}"; then
        :
    elif [ $code -eq 0 ] && [ -n "$absent" ] && [ $served -eq 0 ]; then
        record "$name" skipped "none is installed here, or none could be used: $absent; ${log##*/}"
    elif [ $code -eq 0 ] && [ "${checks:-0}" -gt 0 ]; then
        record "$name" passed "${absent:+not installed here, or of no use to it: $absent; ${log##*/}}" "${figures[@]}"
    elif [ $code -eq 77 ]; then
        record "$name" failed "it found no device, where the probe found one: $(tail -n 1 "$log")"
    else
        record "$name" failed "status $code, ${failures:-?} failures, ${errors:-?} errors: $(grep -m 1 -E ':[EF]:' "$log" | cut -c 1-300); ${log##*/}" "${figures[@]}"
    fi
    report false
}

run_contract() {
    check "contract" 600 "$here/bin/contract_cuda"
    check "contract, vmm=off" 600 "$here/bin/contract_cuda_plain"
}

run_kernels() { check "kernels" 900 "$here/bin/gpu-kernels"; }

# What no library serves runs as in "kernels". Doubles of the libraries take too long for large arrays;
# CK_RUN_CASE=random has none.
run_libraries() {
    if [ "$(told double)" = 1 ] && [ -z "${CK_RUN_CASE:-}" ]; then
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
    local name=$1
    allow "bench $name" "$2" || return
    doing="bench $name"
    shift 2
    local short=()
    [ "${GPU_QUICK:-0}" != 1 ] || short=(--repeat 3)
    rm -f "$out/bench_$name".{json,log}
    limited "$out/bench_$name.json" "$out/bench_$name.log" \
        "$here/bin/bench_$name" --backend cuda --only "${only:-}" --json "${short[@]}"
    if [ $code -eq 0 ]; then
        told_of_bench "$name" "$@"
    elif ! late "bench $name" "bench_$name.log"; then
        record "bench $name" failed "ended with $code: $(tail -n 1 "$out/bench_$name.log" | cut -c 1-300); bench_$name.log"
    fi
    report false
}

# told_of_bench NAME ROW...: what it found out.
told_of_bench() {
    local name=$1 row label part case figure what unit value figures=()
    shift
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

# ---- the report ----------------------------------------------------------------------------------

quote() { sed -e 's/[\\"]/\\&/g' -e 's/[^ -~]/?/g' <<<"$1"; }
of_pages() { sed -n 's/.*\[\(.*\)\].*/\1/p' "/sys/kernel/mm/transparent_hugepage/$1" 2>/dev/null; }
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
version=$("$here/bin/gpud" --version | head -n 1)
pages="huge pages: memory $(of_pages enabled), shared memory $(of_pages shmem_enabled)"
host="$(uname -srm), $(nproc) processors; $pages"
json_head=$(
    printf '{"suite":"gpud gpu suite","date":"%s","driver_double":%s,\n' "$date" \
        "$([ "$(told double)" = 1 ] && echo true || echo false)"
    printf '"device":"%s","arch":"%s","devices":%s,"driver":"%s","kernel_driver":"%s",' \
        "$(quote "$(told device)")" "$(told arch)" "$(told devices)" "$(told cuda)" \
        "$(quote "$(told kernel_driver)")"
    printf '"library":"%s","nvrtc":"%s",\n' "$(quote "$(told library)")" "$(quote "$(told nvrtc)")"
    printf '"build":"%s","built_for":"%s","quick":%s,"budget":%s,"items":"%s","host":"%s",' \
        "$(quote "$version")" "$(told built_for)" \
        "$([ "${GPU_QUICK:-0}" = 1 ] && echo true || echo false)" "${budget:-null}" "${items[*]}" \
        "$(quote "$host")"
)
markdown_head=$(
    printf '# GPU suite: %s\n\n' "$(told device)"
    [ "$(told double)" = 1 ] && printf '**%s.**\n\n' "$what"
    printf -- '- date: %s\n- device: %s\n- driver: %s; %s\n- built for: %s; %s\n- host: %s\n- items: %s%s%s' "$date" \
        "$(told device0)" "$(told cuda)" "$(told kernel_driver)" "$(told built_for)" "$version" \
        "$host" "${items[*]}" "$([ "${GPU_QUICK:-0}" = 1 ] && echo ' (quick)')" \
        "${budget:+, within $budget s}"
)

# report COMPLETE: from what is recorded so far; true or false says whether all has run.
report() {
    {
        printf '%s"complete":%s,\n"results":[\n' "$json_head" "$1"
        sed '$!s/$/,/' "$out/results.jsonl"
        printf ']}\n'
    } >"$scratch/results.json"
    {
        printf '%s\n' "$markdown_head"
        [ "$1" = true ] || printf -- '- not all of it has run\n'
        printf '\n| item | state | what came out |\n|---|---|---|\n'
        cat "$out/results.rows"
    } >"$scratch/results.md"
    mv "$scratch/results.json" "$scratch/results.md" "$out/"
    [ -z "$pack" ] || packed || echo "run.sh: $pack could not be written" >&2
}

# A file that grows meanwhile is no reason to have none.
packed() {
    local how=-cf leave=()
    [ ! "${pack%/*}" -ef "$out" ] || leave=(--exclude "./${pack##*/}")
    ! command -v gzip >/dev/null || how=-czf
    tar -C "$out" "$how" "$scratch/pack" --anchored --no-wildcards "${leave[@]}" . 2>/dev/null || [ $? -eq 1 ] || return 1
    mv -f "$scratch/pack" "$pack"
}

# ---- all of it -------------------------------------------------------------------------------------

# What ends the suite early is told of what ran and of what did not.
doing=
todo=("${items[@]}")
ended=
end() {
    trap '' INT TERM HUP PIPE
    local name tries=0
    if [ -n "$running" ]; then
        kill -TERM "$running" 2>/dev/null
        while [ $tries -lt 20 ] && kill -0 "$running" 2>/dev/null; do
            sleep 0.1
            tries=$((tries + 1))
        done
    fi
    if [ -n "$ended" ]; then
        [ -z "$doing" ] || record "$doing" skipped "the suite was ended by SIG$ended while it ran"
        for name in "${todo[@]}"; do
            record "$name" skipped "the suite was ended by SIG$ended before it ran"
        done
        report false
    fi
    rm -rf "$scratch"
}
by_signal() {
    ended=$1
    exit "$2"
}
trap end EXIT
trap 'by_signal HUP 129' HUP
trap 'by_signal INT 130' INT
trap 'by_signal TERM 143' TERM

printf 'gpu suite on %s\n%s, %s; built for %s; %s\n\n' "$what" "$(told device0)" "$(told cuda)" \
    "$(told built_for)" "$(told kernel_driver)"
report false
for item in "${items[@]}"; do
    todo=("${todo[@]:1}")
    "run_$item"
    doing=
done
report true

count() { grep -c "\"state\":\"$1\"" "$out/results.jsonl"; }
failed=$(count failed)
printf '\n%s passed, %s failed, %s skipped; %s\n' "$(count passed)" "$failed" "$(count skipped)" \
    "$out/results.json"
[ "$(told double)" = 1 ] && printf '%s\n' "$what"
[ "$failed" -eq 0 ]

#!/bin/bash
# Runs the GPU suite in the folder it lies in: what gpud promises of CUDA, checked and measured.
#   run.sh [--quick] [--budget SECONDS] [--out DIR] [--pack FILE] [ITEM]...
#   --quick     fewer repetitions
#   --budget S  ends within S seconds: what does not fit is skipped, and told so; what says most in the
#               least time comes first (an order of items that is given stays)
#   --out DIR   where results.json, results.md and the logs go; default: results-DATE beside here,
#               or below /tmp where that cannot be written
#   --pack FILE all of these in one file too (tar; compressed where there is gzip)
#   ITEM        only these: contract kernels libraries faults direct speed parts programs bench demo
#               storm sanitizer
# Exit status: 0 all passed or skipped with a reason, 1 something failed, 77 there is no GPU or the
# driver is too old.
# The report is written anew after each part of an item, so it is there whatever ends the suite.
# docs/gpu/README.md says what each line means. Only what ran is reported as passed or failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() { sed -n '2,15s/^# \{0,1\}//p' "$here/run.sh"; }

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
    contract | kernels | libraries | faults | direct | speed | parts | programs | bench | demo | storm | sanitizer) items+=("$1") ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done
if [ ${#items[@]} -eq 0 ] && [ -n "$budget" ]; then
    items=(contract direct faults speed parts programs kernels libraries bench demo storm sanitizer)
elif [ ${#items[@]} -eq 0 ]; then
    items=(contract kernels libraries faults direct speed parts programs bench demo storm sanitizer)
fi

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
    for folder in "$prefix"/lib{,64}/python3*/{site,dist}-packages/nvidia/*/lib; do
        if [ -d "$folder" ] && [[ $folder = /* && :$wheels: != *":$folder:"* ]]; then
            wheels+=:$folder
        fi
    done
done < <(pythons)
export LD_LIBRARY_PATH=${folders%:}$wheels

# ---- what there is -------------------------------------------------------------------------------

scratch=$(mktemp -d /tmp/gpud-gpu-XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT

# Of the budget some seconds are kept for what does not end when asked, and for the report.
kept=10
left() { echo $((budget - kept - SECONDS)); }

# limited OUT ERR COMMAND...: for `limit` seconds, as a job of its own: a signal to this script need not
# wait until it ends, and what nobody can end (a driver that hangs in the kernel) is left behind. What
# it says is appended to these files. Sets `code`.
exec {held}</dev/null
running=
limited() {
    began=$SECONDS
    local to=$1 err=$2 patience
    shift 2
    patience=$((limit + kept / 2))
    timeout -k $((kept / 2 - 1)) "$limit" "$@" >>"$to" 2>>"$err" {held}>&- &
    running=$!
    while kill -0 $running 2>/dev/null && [ $((SECONDS - began)) -le $patience ]; do
        sleep 0.1
    done
    code=137
    if kill -0 $running 2>/dev/null; then
        kill -KILL $running # it waits for what does not end; nobody else has to
        disown $running
    else
        wait $running
        code=$?
    fi
    running=
}

limit=120
[ -z "$budget" ] || limit=$(($(left) > 120 ? 120 : $(left) < 10 ? 10 : $(left)))
limited "$scratch/probed" "$scratch/probed.err" "$here/bin/gpu-probe"
cat "$scratch/probed.err" >&2
probed=$(cat "$scratch/probed")
told() { sed -n "s/^$1=//p" <<<"$probed"; }
wanted=$(grep -oE 'GLIBC[A-Z]*_[0-9.]+. not found' "$scratch/probed.err" | grep -oE '[0-9.]+' | sort -Vu | tail -n 1)
if [ -n "$wanted" ]; then
    echo "gpu suite: nothing was run: its programs need a C library (glibc) of $wanted or newer, here is" \
        "$(getconf GNU_LIBC_VERSION 2>/dev/null || echo an older one): make the bundle on an older system" >&2
    exit 1
elif [ $code -eq 77 ]; then
    echo "gpu suite: skipped, nothing was run: see above" >&2
    exit 77
fi
unprobed=
if [ $code -eq 124 ] || [ $code -eq 137 ]; then
    unprobed="gpu-probe did not answer within $limit s: the driver hangs; nothing was run"
elif [ $code -ne 0 ]; then
    unprobed="gpu-probe ended with $code: $(tail -n 1 "$scratch/probed.err" | cut -c 1-300); nothing was run"
fi
[ -z "$unprobed" ] || echo "gpu suite: $unprobed" >&2

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
export GPU_RECORD=$out GPU_KERNELS=$here/kernels.fatbin BENCH_KERNELS=$here/bench_kernels.fatbin GPU_PROGRAMS=$here/cu
[ ! -f "$here/photograph.jpg" ] || export GPU_PICTURE=$here/photograph.jpg
: >"$out/results.jsonl"
: >"$out/results.rows"
ln -s "$here/bin" "$here/lib" "$scratch/"
mkdir "$scratch/cache" "$scratch/bench"
export BENCH_CACHE_DIR=$scratch/bench
cd "$scratch" || exit 1

# A driver without persistence starts the device anew (seconds) whenever nobody has it open; most of
# what runs here is a process of its own. The device files alone are enough, and unlike a context
# they take no memory and nobody's turn. They are let go of when this script ends, however that is.
exec {held}<&-
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

# No part takes more than half of what is left of the budget (a minute is never too much): one that
# hangs leaves time to the others. One that was cut after so long has failed: none needs it on a GPU.
long=${GPU_LONG:-120} # both of the environment are for tests
# What hangs is waited for in each of its tests, as a rule for a minute.
[ -z "$budget" ] || export GPUD_SYSTEM_PATIENCE=${GPUD_SYSTEM_PATIENCE:-30}

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
    share=${GPU_LIMIT:-$((all / 2 > 60 ? all / 2 : all < 60 ? all : 60))}
    if [ "$share" -lt "$limit" ]; then
        limit=$share
        cut=1
    fi
}

# failures LOG: "CASE<tab>TEXT" of each test that failed until now. Check writes a test's line into this
# file when the test ends, and on stdout only when all have.
failures() {
    [ ! -f "$1" ] || sed -nE 's/^[^:]+:[0-9]+:[FE]:([^:]*):[^:]*:-?[0-9]+: (.*)/\1\t\2/p' "$1"
}

passes() { sed -nE '/^[^:]+:[0-9]+:P:/p' "$1" 2>/dev/null | wc -l; }

# late NAME LOG [FAILED]: was it ended for its time? Then that is recorded, with what had failed before.
late() {
    local state=failed why="was ended after $limit s" checked
    [ $code -eq 124 ] || [ $code -eq 137 ] || return 1
    [ $((SECONDS - began)) -ge $((limit - 1)) ] || return 1 # killed by somebody else
    checked=$(passes "${2%.log}.check")
    if [ -n "$cut" ]; then
        why="out of time: $why, all that the budget of $budget s left it"
        [ "$limit" -ge "$long" ] || [ -n "${3:-}" ] || state=skipped
    fi
    [ "$checked" -eq 0 ] || why+="; until then $checked tests passed"
    record "$1" $state "$why${3:+; before that failed: $3}; ${2##*/}"
}

# settle PID: the end of what reads a part's lines. It comes with that of the last who holds them; who is
# left of the part has two seconds.
settle() {
    local tries=0
    while [ $tries -lt 20 ] && kill -0 "$1" 2>/dev/null; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -KILL "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

# failed_since COUNT ITEM: is there a failure, of this item ('{"item":"NAME",') or any, behind so many records?
failed_since() {
    tail -n +$(($1 + 1)) "$out/results.jsonl" | grep -qF "$2\"state\":\"failed\""
}

# part NAME SECONDS COMMAND...: its records are its own. What Check says has failed without one is one more
# by its case's name; an end that is not 0 and that nothing explains, too.
part() {
    local name=$1 log lines before case text
    allow "$@" || return
    doing=$name
    shift 2
    log=$out/$name.log
    lines=$scratch/lines.$name
    before=$(wc -l <"$out/results.jsonl")
    rm -f "$lines" "$log.err" "$out/$name.check"
    mkfifo "$lines" || return
    tee "$log" <"$lines" &
    teller=$!
    limited "$lines" "$log.err" env CK_LOG_FILE_NAME="$out/$name.check" "$@"
    settle $teller
    teller=
    while IFS=$'\t' read -r case text; do
        failed_since "$before" "{\"item\":\"$case\"," || record "$case" failed "$(cut -c 1-400 <<<"$text"); $name.log"
    done < <(failures "$out/$name.check")
    if ! late "$name" "$log" && [ $code -ne 0 ] && ! failed_since "$before" ""; then
        record "$name" failed "ended with $code: $(grep . "$log.err" | tail -n 1 | cut -c 1-300); $name.log"
    fi
    cat "$log.err" >>"$log"
    rm -f "$log.err"
    report false
}

# check NAME SECONDS COMMAND...: a program of Check's: one record, by its last line. Lines "served NAME
# COUNT" become figures; it is skipped if all of them count 0.
check() {
    local name=$1 log checks failures errors line by count served=0 absent="" first
    allow "$@" || return
    doing=$name
    shift 2
    log=$out/${name//[^a-z0-9]/-}.log
    local begin=$SECONDS
    rm -f "$log" "${log%.log}.check"
    limited "$log" "$log" env CK_LOG_FILE_NAME="${log%.log}.check" "$@"
    first=$(failures "${log%.log}.check" | head -n 3 | cut -c 1-200 | tr '\t\n' ':;')
    line=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" | tail -n 1)
    read -r checks failures errors <<<"$(tr -cs '0-9\n' ' ' <<<"${line#*%}")"
    local figures=(checks "${checks:-0}" "" "took" $((SECONDS - begin)) s)
    while read -r _ by count; do
        figures+=("$by" "$count" calls)
        served=$((served + count))
        [ "$count" -gt 0 ] || absent+="${absent:+, }$by"
    done < <(grep -E '^served [a-z]+ [0-9]+$' "$log")
    if late "$name" "$log" "$first"; then
        :
    elif [ $code -eq 0 ] && [ -n "$absent" ] && [ $served -eq 0 ]; then
        record "$name" skipped "none is installed here, or none could be used: $absent; ${log##*/}"
    elif [ $code -eq 0 ] && [ "${checks:-0}" -gt 0 ]; then
        record "$name" passed "${absent:+not installed here, or of no use to it: $absent; ${log##*/}}" "${figures[@]}"
    elif [ $code -eq 77 ]; then
        record "$name" failed "it found no device, where the probe found one: $(tail -n 1 "$log")"
    else
        record "$name" failed "status $code, ${failures:-?} failures, ${errors:-?} errors: ${first:-$(tail -n 1 "$log" | cut -c 1-300); }${log##*/}" "${figures[@]}"
    fi
    report false
}

run_contract() {
    check "contract" 600 "$here/bin/contract_cuda"
    check "contract, vmm=off" 600 "$here/bin/contract_cuda_plain"
}

# One process for all of their tests: to make a context takes longer than most of them.
run_kernels() { check "kernels" 900 env CK_FORK=no "$here/bin/gpu-kernels"; }

# What no library serves runs as in "kernels". Doubles of the libraries take too long for large arrays;
# CK_RUN_CASE=random has none.
run_libraries() {
    if [ "$(told double)" = 1 ] && [ -z "${CK_RUN_CASE:-}" ]; then
        record "libraries" skipped "there are none that compute on the double"
    else
        check "libraries" 900 env CK_FORK=no "$here/bin/gpu-libraries"
    fi
}

run_faults() { part faults 900 "$here/bin/gpu-system" faults; }

run_direct() {
    local item
    for item in attributes opening filling remaps faulted overlap copies turns ends pages pool beside pinning plain fill; do
        part "$item" 300 "$here/bin/gpu-direct" "$item"
    done
}

run_speed() { part speed 600 "$here/bin/gpu-system" speed; }

run_parts() { part parts 300 "$here/bin/gpu-system" parts; }

run_programs() {
    if [ -d "$here/cu" ]; then
        part programs 300 "$here/bin/gpu-system" programs
    else
        record "CUDA programs" skipped "NVRTC or nvcc was not where the bundle was made"
    fi
}

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
    elif ! late "bench $name" "$out/bench_$name.log"; then
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
        "saxpy 1M, 8 at once: gpud's time / the driver's|$ring|saxpy 1M, gpud|8 at once|ratio|x" \
        "five steps, one at a time: gpud's time / the driver's|$ring|five steps 256K, gpud|one at a time|ratio|x"
    bench coldstart 300 "first result, gpud|first result|gpud|time|value|ms" \
        "saved against a context of its own|first result|gpud|saved|value|%>=95"
    # of the driver's: registered memory beside an arena, plain beside plain
    bench bandwidth 400 "256 MiB in, arena: gpud's rate / the driver's|unpinned|256 MiB, gpud, arena|in|ratio|x>=0.95" \
        "256 MiB out, arena: gpud's rate / the driver's|unpinned|256 MiB, gpud, arena|out|ratio|x>=0.95" \
        "256 MiB in, plain: gpud's rate / the driver's|unpinned|256 MiB, gpud|in|ratio|x" \
        "256 MiB out, plain: gpud's rate / the driver's|unpinned|256 MiB, gpud|out|ratio|x"
    only="gpud's"
    bench overlap 300 "all at once: so many times as fast as step by step|gpud's device|all at once|throughput|value|x"
    bench writes 300 "64 neighbours in one job: so many times as fast|gpud's device|adjacent, one job|gain|value|x>=10" \
        "64 scattered in one job: so many times as fast|gpud's device|scattered, one job|gain|value|x>=1.9"
    only=
    bench frames 400 "p50|$ring|gpud|p50|value|ms" "p99|$ring|gpud|p99|value|ms<=5"
}

# The contract again, each access of its kernels checked. Errors that calls return are what the contract
# asks for.
run_sanitizer() {
    local name="contract, compute-sanitizer" tool
    tool=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
    if [ "$(told double)" = 1 ]; then
        record "$name" skipped "it needs a real driver"
    elif [ -z "$tool" ]; then
        record "$name" skipped "compute-sanitizer is not installed here (it comes with the CUDA toolkit)"
    else
        check "$name" 600 "$tool" --report-api-errors no --target-processes all --error-exitcode 86 \
            "$here/bin/contract_cuda"
    fi
}

# 16 clients that check every result while processes are killed and stopped (tests/storm).
run_storm() {
    local seconds=120
    [ "${GPU_QUICK:-0}" != 1 ] || seconds=40
    if [ "$(told double)" = 1 ]; then
        record "storm" skipped "the double computes nothing that could be checked"
    else
        check "storm" $((120 + 2 * seconds)) "$here/bin/gpu-storm" --device cuda --seconds $seconds \
            --seed "${GPU_STORM_SEED:-1}" --keep "$out/storm-daemon.log"
    fi
}

run_demo() { part demo 300 "$here/bin/gpu-system" demo; }

# ---- the report ----------------------------------------------------------------------------------

quote() { sed -e 's/[\\"]/\\&/g' -e 's/[^ -~]/?/g' <<<"$1"; }
of_pages() { sed -n 's/.*\[\(.*\)\].*/\1/p' "/sys/kernel/mm/transparent_hugepage/$1" 2>/dev/null; }
count() { grep -c "\"state\":\"$1\"" "$out/results.jsonl"; }
number() { [[ ${1:-} =~ ^[0-9]+$ ]] && echo "$1" || echo null; }
date=$(date -u +%Y-%m-%dT%H:%M:%SZ)
version=$("$here/bin/gpud" --version | head -n 1)
pages="huge pages: memory $(of_pages enabled), shared memory $(of_pages shmem_enabled)"
host="$(uname -srm), $(nproc) processors; $pages"
json_head=$(
    printf '{"suite":"gpud gpu suite","date":"%s","driver_double":%s,\n' "$date" \
        "$([ "$(told double)" = 1 ] && echo true || echo false)"
    printf '"device":"%s","arch":"%s","devices":%s,"driver":"%s","kernel_driver":"%s",' \
        "$(quote "$(told device)")" "$(told arch)" "$(number "$(told devices)")" "$(told cuda)" \
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

# report COMPLETE: from what is recorded so far; true or false says whether all has run. Sets `failed`.
report() {
    local passed skipped status=null
    passed=$(count passed)
    failed=$(count failed)
    skipped=$(count skipped)
    [ "$1" = false ] || status=$((failed > 0))
    {
        printf '%s"complete":%s,\n' "$json_head" "$1"
        printf '"passed":%s,"failed":%s,"skipped":%s,"exit_status":%s,\n"results":[\n' \
            "$passed" "$failed" "$skipped" "$status"
        sed '$!s/$/,/' "$out/results.jsonl"
        printf ']}\n'
    } >"$scratch/results.json"
    {
        printf '%s\n' "$markdown_head"
        [ "$1" = true ] || printf -- '- not all of it has run\n'
        printf '\n| item | state | what came out |\n|---|---|---|\n'
        cat "$out/results.rows"
        printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
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
teller=
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
    [ -z "$teller" ] || kill -TERM "$teller" 2>/dev/null
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

if [ -n "$unprobed" ]; then
    record probe failed "$unprobed"
    report true
    exit 1
fi
printf 'gpu suite on %s\n%s, %s; built for %s; %s\n\n' "$what" "$(told device0)" "$(told cuda)" \
    "$(told built_for)" "$(told kernel_driver)"
report false
for item in "${items[@]}"; do
    todo=("${todo[@]:1}")
    "run_$item"
    doing=
done
report true

printf '\n%s passed, %s failed, %s skipped; %s\n' "$(count passed)" "$failed" "$(count skipped)" \
    "$out/results.json"
[ "$(told double)" = 1 ] && printf '%s\n' "$what"
[ "$failed" -eq 0 ]

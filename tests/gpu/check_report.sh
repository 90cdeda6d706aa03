#!/bin/bash
# The GPU suite's report on the driver's double: whole whatever ends the suite, within its budget, and
# in one file where that is asked for.
#   check_report.sh BUNDLE FAKECUDA
set -euo pipefail
bundle=$1
double=$2
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
suite=
left=() # processes that a stub leaves behind
end() {
    [ -z "$suite" ] || kill -TERM "$suite" 2>/dev/null || true
    for pid in "${left[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap end EXIT
export LD_LIBRARY_PATH=$double

fail() {
    printf 'check-gpu-report: %s\n' "$*" >&2
    cat "$work/said" >&2
    exit 1
}

# told FILE: "complete", then "ITEM STATE" and its reason, a line each.
told() {
    python3 - "$1" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
print(str(report["complete"]).lower())
for r in report["results"]:
    print(r["item"], r["state"], r["reason"] or r["note"], *(f'{f["name"]}={f["value"]:g}' for f in r["figures"]))
END
}

# Ended in the middle: what ran, what ended it and what did not run stand in the report and in the
# packed one; nothing of it goes on.
"$bundle/run.sh" --quick --out "$work/ended" --pack "$work/ended.tgz" kernels demo >"$work/said" 2>&1 &
suite=$!
tries=0
until [ -s "$work/ended/results.json" ] && [ -e "$work/ended/kernels.log" ]; do
    kill -0 $suite 2>/dev/null || fail "it ended by itself"
    tries=$((tries + 1))
    [ $tries -lt 1200 ] || fail "it does not begin"
    sleep 0.1
done
kill -TERM $suite
code=0
wait $suite || code=$?
suite=
[ $code -eq 143 ] || fail "ended by SIGTERM it gave $code"
want=$'false\nkernels skipped the suite was ended by SIGTERM while it ran\ndemo skipped the suite was ended by SIGTERM before it ran'
mkdir "$work/packed"
tar -C "$work/packed" -xf "$work/ended.tgz"
for folder in ended packed; do
    got=$(told "$work/$folder/results.json")
    [ "$got" = "$want" ] || fail "$folder: $got"
    grep -q 'not all of it has run' "$work/$folder/results.md" || fail "$folder: results.md is as of a whole one"
done
[ -e "$work/packed/kernels.log" ] || fail "a log is missing in the packed results"

# No time: nothing runs, nothing fails, and it is a whole report.
"$bundle/run.sh" --budget 1 --out "$work/late" --pack "$work/results" contract bench >"$work/said" 2>&1 || fail "--budget 1 gave $?"
got=$(told "$work/late/results.json")
if [ "$(grep -c 'skipped out of time' <<<"$got")" -ne 8 ] || [ "${got%%$'\n'*}" != true ]; then
    fail "$got"
fi

# The packed file is not in itself, and leaves nothing out that is called as it is.
tar -tf "$work/results" >"$work/list"
grep -qx ./results.json "$work/list" || fail "the report is not in what was packed"

# The order of a short lease: what says most in the least time comes first; the sums are those of the rows.
"$bundle/run.sh" --budget 1 --out "$work/order" >"$work/said" 2>&1 || fail "--budget 1 gave $?"
python3 - "$work/order/results.json" <<'END' || fail "the order, or the sums"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["items"].startswith("contract direct faults speed parts"), r["items"]
assert r["results"][0]["item"] == "contract", r["results"][0]
assert (r["passed"], r["failed"], r["skipped"]) == (0, 0, len(r["results"])), r
assert r["exit_status"] == 0
END

# stubbed NAME: a bundle in which this program is a script (stdin).
stubbed() {
    rm -rf "$work/stubbed"
    cp -rs "$bundle" "$work/stubbed"
    rm "$work/stubbed/bin/$1"
    cat >"$work/stubbed/bin/$1"
    chmod +x "$work/stubbed/bin/$1"
}

# ran STATUS ARGUMENT...: the stubbed suite, and the status that it has to end with. Sets `got`.
ran() {
    local want=$1 code=0
    shift
    rm -rf "$work/out"
    "$work/stubbed/run.sh" --out "$work/out" "$@" >"$work/said" 2>&1 || code=$?
    got=$(told "$work/out/results.json")
    [ $code -eq "$want" ] || fail "$*: it gave $code: $got"
}

# has PATTERN...: each in a line of its own, and no more records than these.
has() {
    local pattern
    for pattern in "$@"; do
        grep -qE "^$pattern" <<<"$got" || fail "no $pattern in: $got"
    done
    [ "$(wc -l <<<"$got")" -eq $(($# + 1)) ] || fail "not $# records: $got"
}

# What somebody else killed has failed, whatever time it had.
stubbed gpu-kernels <<'END'
#!/bin/sh
kill -KILL $$
END
ran 1 --budget 100 kernels
has 'kernels failed'

# What failed before a part was cut has failed. The stub's parent is what ends it for its time: stopped it
# ends nothing, as with a process that the kernel does not let go of.
stubbed gpu-kernels <<END
#!/bin/bash
echo "$work/a.c:1:P:sum:sum:0: Passed" >"\$CK_LOG_FILE_NAME"
echo "$work/a.c:2:F:sum:scan:3: element 7 is 8" >>"\$CK_LOG_FILE_NAME"
echo \$\$ >"$work/pid"
kill -STOP \$PPID
exec sleep 600
END
GPU_LIMIT=8 ran 1 --budget 9000 kernels
left+=("$(cat "$work/pid")")
has 'kernels failed out of time: .*until then 1 tests passed; before that failed: sum:element 7 is 8'

# The same where each test is a record; what was cut without a reason is skipped, or has failed if it had
# longer than it may take. A row that stands there already is not told again.
stubbed gpu-system <<END
#!/bin/bash
"$bundle/bin/gpu-record" "fault 3, trap" failed "its target was missed"
echo "$work/a.c:2:F:fault 2, misaligned:fault:1: the jobs never ended" >"\$CK_LOG_FILE_NAME"
echo "$work/a.c:2:F:fault 3, trap:fault:1: a target was missed" >>"\$CK_LOG_FILE_NAME"
exec sleep 600
END
GPU_LIMIT=8 ran 1 --budget 9000 faults
has 'fault 2, misaligned failed the jobs never ended; faults.log' \
    'fault 3, trap failed its target was missed$' 'faults skipped out of time'
GPU_LIMIT=8 GPU_LONG=2 ran 1 --budget 9000 faults
has 'fault 2' 'fault 3' 'faults failed out of time'

# Who is left of a part and holds its lines holds nothing up: it is there when the suite has ended.
stubbed gpu-system <<END
#!/bin/bash
setsid sleep 600 &
echo \$! >"$work/pid"
echo "passed another  cuMemcpy was called, no error"
echo "cuInit: CUDA_ERROR_UNKNOWN (999)" >&2
exit 3
END
ran 1 parts
left+=("$(cat "$work/pid")")
kill -0 "${left[-1]}" || fail "it waited for who was left"
has 'parts failed ended with 3: cuInit: CUDA_ERROR_UNKNOWN'

# A probe that does not answer: that is the report.
stubbed gpu-probe <<'END'
#!/bin/sh
exec sleep 600
END
ran 1 --budget 12 --pack "$work/out/all.tar" kernels
has 'probe failed gpu-probe did not answer'
tar -tf "$work/out/all.tar" >"$work/list"
grep -qx ./results.md "$work/list" || fail "that the probe hangs is not in what was packed"

# Programs that the loader refuses: the C library that they need is named.
stubbed gpu-probe <<'END'
#!/bin/sh
echo "gpu-probe: /lib/libc.so.6: version \`GLIBC_2.34' not found (required by gpu-probe)" >&2
echo "gpu-probe: /lib/libc.so.6: version \`GLIBC_2.105' not found (required by gpu-probe)" >&2
exit 1
END
code=0
"$work/stubbed/run.sh" --out "$work/old" kernels >"$work/said" 2>&1 || code=$?
if [ $code -ne 1 ] || [ -e "$work/old" ] || ! grep -qE 'C library \(glibc\) of 2\.105 or newer' "$work/said"; then
    fail "without the C library it gave $code"
fi

# A row that fails by an assertion is called by its name, once.
stubbed example_export <<'END'
#!/bin/sh
echo "there is no CUDA here"
END
CK_RUN_CASE='fault 2, misaligned' CUDA_FAKE=unknown=noop ran 1 faults
has 'fault 2, misaligned failed .* instead of .*KERNEL_FAULT'

# Nothing exported is nothing shown.
CK_RUN_CASE='exported buffer' ran 0 parts
has 'exported buffer skipped there is no CUDA here'

# Programs of both compilers are loaded and launched, where both were there when the bundle was made.
if [ -d "$bundle/cu" ]; then
    "$bundle/run.sh" --out "$work/programs" programs >"$work/said" 2>&1 || fail "programs gave $?"
    got=$(told "$work/programs/results.json")
    grep -qE '^CUDA programs skipped they were .* programs=20 launched by nvcc=20 launched by NVRTC=20$' <<<"$got" || fail "$got"
fi

# Who served: a library's double; nobody, where there is none; and an item that was not asked for is
# not there.
export CK_RUN_CASE=random
"$bundle/run.sh" --out "$work/served" libraries >"$work/said" 2>&1 || fail "libraries gave $?"
got=$(told "$work/served/results.json")
grep -qE '^libraries passed .*cublas.* curand=[1-9]' <<<"$got" || fail "$got"
mkdir "$work/driver"
cp "$double/libcuda.so.1" "$work/driver/"
LD_LIBRARY_PATH=$work/driver "$bundle/run.sh" --out "$work/none" libraries >"$work/said" 2>&1 ||
    fail "without libraries it gave $?"
got=$(told "$work/none/results.json")
grep -qE '^libraries skipped none is installed here, or' <<<"$got" || fail "$got"

# As pip leaves them in an environment.
wheel=$work/venv/lib/python3.11/site-packages/nvidia/curand/lib
mkdir -p "$wheel"
cp "$double/libcurand.so.10" "$wheel/"
LD_LIBRARY_PATH=$work/driver VIRTUAL_ENV=$work/venv "$bundle/run.sh" --out "$work/wheel" libraries \
    >"$work/said" 2>&1 || fail "with a wheel it gave $?"
got=$(told "$work/wheel/results.json")
grep -qE '^libraries passed not installed here.*: cublas, cufft, cub; .* curand=[1-9]' <<<"$got" || fail "$got"
echo "check-gpu-report: whole, in time, and who served is told"

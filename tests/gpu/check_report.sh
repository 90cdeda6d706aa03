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
trap '[ -z "$suite" ] || kill -TERM "$suite" 2>/dev/null || true; rm -rf "$work"' EXIT
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
tar -tf "$work/results" | grep -qx ./results.json || fail "the report is not in what was packed"

# What somebody else killed has failed, whatever time it had.
cp -rs "$bundle" "$work/killed"
rm "$work/killed/bin/gpu-kernels"
# shellcheck disable=SC2016 # for the stub to expand
printf '#!/bin/sh\nkill -KILL $$\n' >"$work/killed/bin/gpu-kernels"
chmod +x "$work/killed/bin/gpu-kernels"
code=0
"$work/killed/run.sh" --budget 100 --out "$work/kill" kernels >"$work/said" 2>&1 || code=$?
got=$(told "$work/kill/results.json")
if [ $code -eq 0 ] || ! grep -q '^kernels failed' <<<"$got"; then
    fail "killed, it gave $code: $got"
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

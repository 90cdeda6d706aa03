#!/bin/sh
# Exit codes of gpuctl where no daemon is needed. $1: the program.
set -u
gpuctl=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
GPUD_URL=ipc://$dir/nobody.sock
export GPUD_URL
failed=0

expect() {
    want=$1
    shift
    "$gpuctl" "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    if [ $got -ne "$want" ]; then
        echo "gpuctl $*: exit code $got, expected $want" >&2
        cat "$dir/err" >&2
        failed=1
    fi
    # What goes wrong is told on standard error only; what is asked for on standard output only.
    if [ "$want" -eq 0 ] && { [ ! -s "$dir/out" ] || [ -s "$dir/err" ]; }; then
        echo "gpuctl $*: output is not where it belongs" >&2
        failed=1
    fi
    if [ "$want" -ne 0 ] && { [ -s "$dir/out" ] || [ ! -s "$dir/err" ]; }; then
        echo "gpuctl $*: messages are not where they belong" >&2
        failed=1
    fi
}

"$gpuctl" --help | sed -n 's/^  \([a-z][a-z-]*\( [a-z]*\)\{0,1\}\).*/\1/p' >"$dir/commands"
if [ "$(wc -l <"$dir/commands")" -lt 20 ]; then
    echo "gpuctl --help lists too few commands" >&2
    failed=1
fi
while read -r first second; do
    # shellcheck disable=SC2086 # no second word is no argument
    expect 0 $first $second --help
    # shellcheck disable=SC2086
    expect 2 $first $second --no-such-option
done <"$dir/commands"

expect 0 --version
expect 0 -V
expect 2
expect 2 nothing
expect 2 job
expect 2 job nothing
expect 2 job show
expect 2 job show x
expect 2 job show 1 2
expect 2 ping pong
expect 2 -o xml ping
expect 2 ping -o
expect 2 -u
expect 2 -u foo://bar ping
expect 2 run
expect 2 run k --arg i32:x
for option in "--lang opencl" "-D N=1" "-I ." "--build-option -O3"; do
    # shellcheck disable=SC2086 # an option and its value
    expect 2 run axpy $option
    grep -q 'need --source' "$dir/err" || { echo "$option without a source was taken" >&2; failed=1; }
done
expect 2 run k --expr x
expect 2 run k --global 0
expect 2 run k --local 4
expect 2 run k --repeat 0
expect 2 run k --timeout -1
expect 2 run k --max-input 0
expect 2 run k --max-input 1X
expect 2 run k --lang fortran
expect 2 run k --variable n=i32:7
expect 2 run k --source "$0" --variable i32:7
expect 2 run k --source "$0" --variable n=7
expect 2 run k --source "$0" --variable n=scratch:7
expect 2 run k --define 1=2
expect 2 run k --arg in:@- --arg in:@-
expect 2 run k --detach --save 0=x.npy

says() { # WORDS: the last command's message has them
    grep -qF -- "$1" "$dir/err" || { echo "'$1' is not in: $(cat "$dir/err")" >&2; failed=1; }
}
expect 2 jbos
says 'did you mean jobs?'
expect 2 job shwo
says 'did you mean job show?'
expect 2 status --ouput json
says 'did you mean --output?'
expect 2 job
says 'needs a second word: show, dump, cancel'
expect 2 job show
says 'JOB is missing: gpuctl job show JOB'
expect 2 log-level
says 'LEVEL is missing'
for command in "run k" "kernel check $0"; do
    # shellcheck disable=SC2086 # its words
    expect 2 $command --lang fortran
    says '--lang fortran: opencl, cuda, ptx'
done
expect 2 xyzzy
grep -q 'did you mean' "$dir/err" && { echo "nothing is near xyzzy" >&2; failed=1; }
expect 2 jobs --limit 0
expect 2 devices -w 0
expect 2 devices -w x
expect 2 devices -w -1
expect 2 -w 1 drain
says '-w repeats only commands that show something'
expect 2 drain -w 1
expect 2 wait
expect 2 wait x
expect 2 wait 1 2
expect 2 wait 1 --timeout 0
expect 2 jobs --session x
GPUD_TIMEOUT_MS=x expect 2 run axpy
expect 2 kernel check
expect 1 demo --image "$dir/nothing.jpg" -f "$dir/x.png"
expect 1 demo -f "$dir/nowhere/x.png"
for command in ping status devices pool kernels jobs sessions tenants drain resume reload 'job show 1' \
    'job cancel 1' 'explain 1' 'wait 1' 'devices -w 1' 'config show' 'pool trim' 'pool stats' 'session kill 1' \
    'log-level info' 'run axpy' "kernel check $0"; do
    # shellcheck disable=SC2086 # words
    GPUD_TIMEOUT_MS=20 expect 3 $command
    # shellcheck disable=SC2086
    GPUD_TIMEOUT_MS=20 expect 3 -o json $command
done

# What cannot be written is told, whichever command printed it.
written() {
    if [ "$1" -ne 1 ] || ! grep -q 'gpuctl: writing the output: ' "$dir/err"; then
        echo "gpuctl $2: exit code $1" >&2
        cat "$dir/err" >&2
        failed=1
    fi
}

for words in --version --help 'demo --help'; do
    # shellcheck disable=SC2086
    "$gpuctl" $words >/dev/full 2>"$dir/err"
    written $? "$words to a full device"
    # shellcheck disable=SC2086
    "$gpuctl" $words 2>"$dir/err" >&-
    written $? "$words to a closed output"
    # shellcheck disable=SC2086
    "$gpuctl" $words 2>"$dir/err" <&- >&-
    written $? "$words to a closed output, with a closed input"
done
exit $failed

#!/bin/bash
# Proves that a model has no lost wake-up, and that the model would find one: check.sh MODEL.pml
# Without spin or a compiler the test is skipped (77).
set -euo pipefail
model=$(realpath "$1")
for tool in spin cc; do
    command -v "$tool" >/dev/null || { echo "no $tool: skipped"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# errors NAME OPTION...: how many errors an exhaustive search finds
errors() {
    local name=$1
    shift
    mkdir "$name"
    cd "$name"
    spin -a "$@" "$model" >spin.log
    cc -O1 -w -DSAFETY -DMEMLIM=1024 -o pan pan.c
    ./pan -m100000 >pan.log
    cat pan.log >&2
    if grep -q -e 'Search not completed' -e 'max search depth too small' pan.log &&
        ! grep -q 'errors: [1-9]' pan.log; then
        echo "$name: not searched through" >&2
        exit 1
    fi
    sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log
    cd ..
}

found=$(errors model)
[ "$found" = 0 ] || { echo "the model has $found errors"; exit 1; }
found=$(errors mutant -DMUTANT)
[ "$found" -gt 0 ] || { echo "the mutant was not found: the model proves nothing"; exit 1; }
echo "no lost wake-up in the model, the mutant was found"

#!/bin/bash
# Checks that tests fail when the defence that they cover is switched off.
#   scripts/mutants.sh [--check] [NAME...]    all of tests/mutants/*.mutant, or only NAMEs
#   --check   builds nothing; checks that the place and the test of every mutant exist
# Each mutant removes one defence from a copy of the tree (build/mutants; scripts/mutate edits it).
# Its "test:" line names the ctest entry and the test that must fail. That test must pass in the
# unchanged copy first.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
tree=$root/build/mutants/tree
build=$root/build/mutants/build
kept=$root/build/mutants/kept # the unchanged sources, while a mutant of them is tried
limit=${GPUD_MUTANT_SECONDS:-240}
export GPUD_SYSTEM_PATIENCE=${GPUD_SYSTEM_PATIENCE:-20}

check_only=no
names=()
for arg in "$@"; do
    case $arg in
    --check) check_only=yes ;;
    -*)
        sed -n '2,7s/^# //p' "$0" >&2
        exit 2
        ;;
    *) names+=("$arg") ;;
    esac
done
if [ ${#names[@]} -eq 0 ]; then
    for file in tests/mutants/*.mutant; do
        names+=("$(basename "$file" .mutant)")
    done
fi

# Later the copy's, so that edits during a run have no effect.
mutants=$root/tests/mutants
file_of() { echo "$mutants/$1.mutant"; }

# The program and its test that must kill the mutant.
test_of() { sed -n 's/^test: *//p' "$(file_of "$1")"; }

check() {
    local name=$1 program test
    if [ ! -f "$(file_of "$name")" ]; then
        echo "$name: there is no such mutant"
        return 1
    fi
    read -r program test < <(test_of "$name")
    if ! grep -rqE "START_TEST\($test\)" tests; then
        echo "$name: there is no test $test of $program"
        return 1
    fi
}

bad=0
files=()
for name in "${names[@]}"; do
    check "$name" || bad=1
    files+=("$(file_of "$name")")
done
[ "$bad" = 0 ] && { scripts/mutate --check "${files[@]}" || bad=1; }
if [ "$bad" != 0 ] || [ "$check_only" = yes ]; then
    [ "$bad" = 0 ] && echo "${#names[@]} mutants have their place"
    exit "$bad"
fi

# ---- the copy ----------------------------------------------------------------------------------

mkdir -p "$tree" || exit 1
# --touch: else files are older than what an earlier run has built from a mutant of them.
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- \
    --ignore-failed-read 2>/dev/null | tar --extract --touch --directory="$tree"
rm -rf "$kept" # of an interrupted run
mutants=$tree/tests/mutants
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
# Code that a mutant leaves unused is no error.
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS="-Wno-unused" >/dev/null || exit 1

make_test() { cmake --build "$build" --parallel "$(nproc)" --target "$1" >"$build.log" 2>&1; }

# Each test of tests/system and tests/fault has a case of its own, named like the test.
run_test() {
    local program=$1 test=$2
    local choose=()
    [[ $program == test_system_* || $program == test_fault_* ]] && choose=("CK_RUN_CASE=$test")
    (cd "$build" && env "${choose[@]}" timeout --kill-after=20 "$limit" \
        ctest -R "^$program\$" --no-tests=error --output-on-failure) >"$build.log" 2>&1
}

# Where it failed, from Check's own lines.
failure_of() { grep -aE ":[FE]:[^:]*:$1:" "$build.log" | head -n 1; }

mutate() { "$tree/scripts/mutate" "$(file_of "$1")" --in "$tree" --keep "$kept"; }

# The copies are newer than what was built from the mutant.
revert() {
    if [ -d "$kept" ]; then
        cp -r "$kept/." "$tree/" && rm -rf "$kept"
    fi
}

declare -A passed=()
baseline() {
    local program=$1 test=$2
    [ -z "${passed["$program $test"]:-}" ] || return 0
    make_test "$program" && run_test "$program" "$test" && passed["$program $test"]=yes
}

# Prints the result of a mutant; true: its test killed it.
try() {
    local name=$1 program test status
    read -r program test < <(test_of "$name")
    if ! baseline "$program" "$test"; then
        echo "ERROR     $name: $program $test does not pass as it is"
        tail -n 30 "$build.log"
        return 1
    fi
    if ! mutate "$name" || ! make_test "$program"; then
        echo "ERROR     $name: does not build"
        tail -n 30 "$build.log"
        return 1
    fi
    run_test "$program" "$test"
    status=$?
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        echo "killed    $name: $test hung"
    elif [ "$status" = 0 ]; then
        echo "SURVIVED  $name: $program $test passes without it"
        return 1
    elif [ -n "$(failure_of "$test")" ]; then
        echo "killed    $name: $(failure_of "$test" | cut -c 1-200)"
    else
        echo "SURVIVED  $name: $program failed, but not in $test"
        grep -aE ":[FE]:" "$build.log" | head -n 5
        return 1
    fi
}

current=
trap '[ -z "$current" ] || revert' EXIT
survived=0
for name in "${names[@]}"; do
    current=$name
    try "$name" || survived=$((survived + 1))
    revert
done
current=
echo "${#names[@]} mutants, $((${#names[@]} - survived)) killed, $survived not"
[ "$survived" = 0 ]

#!/bin/bash
# Measures how many of the mutants of the front, of libgpud, or of the worker and its pool, the
# simulation finds (tests/sim/README.md, tests/sim/client/README.md, tests/sim/worker/README.md).
#   scripts/sim-mutants.sh            all mutants of daemon/front that lie behind its connections
#   scripts/sim-mutants.sh --worker   all mutants of daemon/worker and daemon/pool, by worker_sim
#   scripts/sim-mutants.sh --client   all mutants of client/src, by client_sim
#   scripts/sim-mutants.sh [--worker|--client] NAME...    only these
# Builds front_sim (worker_sim, client_sim) in a copy of the tree (build/sim-mutants) for one mutant at a time,
# and plays seeds 1 to GPUD_SIM_SEEDS (1000; or a range as of front_sim's --seeds) until one breaks a rule. Prints a line for each mutant and the
# share that was found. Fails only if the unchanged tree breaks a rule, or a mutant does not build.
# The seed that found a mutant is kept (build/sim-mutants/found), and played first the next time.
# GPUD_SIM_LANES: processes at once (the number of processors). GPUD_SIM_TRUST=yes: does not play the unchanged tree first.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
tree=$root/build/sim-mutants/tree
build=$root/build/sim-mutants/build
kept=$root/build/sim-mutants/kept
hints=$root/build/sim-mutants/found
seeds=${GPUD_SIM_SEEDS:-1000}
case $seeds in *-*) ;; *) seeds=1-$seeds ;; esac
lanes=${GPUD_SIM_LANES:-$(nproc)}
sim=front_sim
if [ "${1:-}" = --worker ]; then
    sim=worker_sim
    shift
elif [ "${1:-}" = --client ]; then
    sim=client_sim
    shift
fi

mkdir -p "$tree" || exit 1
touch "$hints" || exit 1
# --touch: else files are older than what an earlier run has built from a mutant of them.
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- \
    --ignore-failed-read 2>/dev/null | tar --extract --touch --directory="$tree"
rm -rf "$kept" # of an interrupted run
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS="-Wno-unused" >/dev/null || exit 1

make_sim() { cmake --build "$build" --parallel "$lanes" --target "$sim" >"$build.log" 2>&1; }

# play RANGE: the first rule that a seed breaks; empty: none does.
play() {
    "$build/tests/$sim" --seeds "$1" --lanes "$lanes" --first 2>&1 |
        grep -a -m 1 '^seed' | cut -c 1-110
}

# find_rule NAME: as play, but the seeds that found this mutant before are played first, if they are among the seeds.
find_rule() {
    local seed broken="" step=${seeds##*/}
    [ "$step" = "$seeds" ] && step=1
    local range=${seeds%%/*}
    local low=${range%-*} high=${range#*-}
    while [ -z "$broken" ] && read -r seed; do
        if [ "$seed" -ge "$low" ] && [ "$seed" -le "$high" ] && [ $(((seed - low) % step)) -eq 0 ]; then
            broken=$(play "$seed-$seed")
        fi
    done < <(sed -n "s/^$sim $1 //p" "$hints" | sort -nu)
    [ -n "$broken" ] || broken=$(play "$seeds")
    if [ -n "$broken" ]; then
        seed=${broken#seed }
        echo "$sim $1 ${seed%%:*}" >>"$hints"
        echo "$broken"
    fi
}

# The mutants that edit the front only, but not its connections and its process, which the
# simulation replaces. So it does with the connection to the launcher (launcher_link.c), with what is
# sent to workers (link.c: the simulation says when a channel is full), and with the thread that
# answers scrapers (server.c, and page.c, which has the answers that connections have yet to read).
of_front() {
    "$tree/scripts/mutate" --places "$tree"/tests/mutants/*.mutant --in "$tree" |
        grep -E '^[^ ]+( daemon/front/[^ ]+)+$' |
        grep -vE ' daemon/front/(clients/|settings/|main|ending|pipeline_|modules/(cache|compiler)|workers/(launcher_)?link\.|metrics/(server|page)\.)' |
        cut -d ' ' -f 1
}

of_worker() {
    "$tree/scripts/mutate" --places "$tree"/tests/mutants/*.mutant --in "$tree" |
        grep -E '^[^ ]+( daemon/(worker|pool)/[^ ]+)+$' | cut -d ' ' -f 1
}

of_client() {
    "$tree/scripts/mutate" --places "$tree"/tests/mutants/*.mutant --in "$tree" |
        grep -E '^[^ ]+( client/src/[^ ]+)+$' |
        cut -d ' ' -f 1
}

# The copies are newer than what was built from the mutant.
revert() {
    if [ -d "$kept" ]; then
        (cd "$kept" && find . -type f -exec touch {} \;)
        cp -r "$kept/." "$tree/" && rm -rf "$kept"
    fi
}
trap revert EXIT

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    case $sim in
    worker_sim) mapfile -t names < <(of_worker) ;;
    client_sim) mapfile -t names < <(of_client) ;;
    *) mapfile -t names < <(of_front) ;;
    esac
fi

make_sim || { tail -n 20 "$build.log"; exit 1; }
broken=
[ -n "${GPUD_SIM_TRUST:-}" ] || broken=$(play "$seeds")
if [ -n "$broken" ]; then
    echo "the unchanged tree breaks a rule: $broken"
    exit 1
fi
found=0
bad=0
for name in "${names[@]}"; do
    if ! "$tree/scripts/mutate" "$tree/tests/mutants/$name.mutant" --in "$tree" --keep "$kept" ||
        ! make_sim; then
        echo "ERROR      $name: does not build"
        bad=1
    else
        broken=$(find_rule "$name")
        if [ -n "$broken" ]; then
            echo "found      $name: $broken"
            found=$((found + 1))
        else
            echo "not found  $name"
        fi
    fi
    revert
done
echo "${#names[@]} mutants, $found found by seeds $seeds"
exit "$bad"

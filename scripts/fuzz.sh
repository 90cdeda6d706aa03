#!/bin/bash
# Runs one fuzz target for GPUD_FUZZ_SECONDS from its seeds: fuzz.sh PROGRAM [CORPUS [DICT]]
# What it finds is left in the current directory as crash-*, which fails the test.
set -euo pipefail
program=$1 corpus=${2:-} dict=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dirs=("$work")
[ -z "$corpus" ] || dirs+=("$corpus")
options=(-max_total_time="${GPUD_FUZZ_SECONDS:-60}" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1)
[ -z "$dict" ] || options+=(-dict="$dict")
# New inputs go to the first folder; the seeds are only read.
"$program" "${options[@]}" "${dirs[@]}" 2>&1 | tail -n 40

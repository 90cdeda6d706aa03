#!/bin/bash
# fish and zsh offer what bash offers: they ask it.
# usage: completions.sh SOURCE_DIR
set -euo pipefail
source=${1:?usage: completions.sh SOURCE_DIR}/packaging/completions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in gpuctl.fish _gpuctl; do
    sed "s|@GPUD_BASH_COMPLETION@|$source/gpuctl|" "$source/$file" >"$work/$file"
done
cat >"$work/zsh" <<'ZSH'
compadd() { while [[ $1 == -* && $1 != -- ]]; do shift; done; shift; print -l -- "$@" }
words=(gpuctl "$@") CURRENT=$(($# + 1))
source ${0:h}/_gpuctl
ZSH
: >"$work/a file"

# The last word is what is being completed.
by_bash() {
    bash -c '. "$1"; COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)); _gpuctl; printf "%s\n" "${COMPREPLY[@]}"' \
        gpuctl "$source/gpuctl" gpuctl "$@"
}
by_fish() { fish --no-config -c "source '$work/gpuctl.fish'; complete -C 'gpuctl $*'" | cut -f 1; }
by_zsh() { zsh -f "$work/zsh" "$@"; }

# fish lists directories with a slash, and adds no word of its own.
agree() { # WORDS
    local shell bash
    bash=$(by_bash "$@" | sort)
    [ -n "$bash" ] || { echo "bash offers nothing for: gpuctl $*" >&2; exit 1; }
    for shell in fish zsh; do
        if ! diff <(echo "$bash") <("by_$shell" "$@" | sort) >"$work/differ"; then
            echo "$shell differs from bash for: gpuctl $*" >&2
            cat "$work/differ" >&2
            exit 1
        fi
    done
}
agree ''
agree pool ''
agree -o j
agree jobs --s
agree log-level w
agree kernel check "$work/"
echo "fish and zsh agree with bash"

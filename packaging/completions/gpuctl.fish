# fish completion for gpuctl: bash's answers, so that shells never differ.
function __gpuctl_words
    set -l words (commandline --cut-at-cursor --tokenize --current-process)
    bash -c '. "$1" && COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) && _gpuctl && printf "%s\n" "${COMPREPLY[@]}"' \
        gpuctl @GPUD_BASH_COMPLETION@ $words (commandline --cut-at-cursor --current-token) 2>/dev/null
end
complete --command gpuctl --no-files --arguments '(__gpuctl_words)'

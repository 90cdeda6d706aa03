#!/bin/bash
# What packaging/nvidia-devices asks of modprobe and nvidia-modprobe, which are doubles here.
# usage: nvidia_devices.sh SCRIPT
set -euo pipefail
script=${1:?usage: nvidia_devices.sh SCRIPT}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
mkdir "$work/bin"
# shellcheck disable=SC2016 # for the double to expand
printf '#!/bin/sh\necho "${0##*/} $*" >>"%s/calls"\nexit 1\n' "$work" >"$work/bin/modprobe"
chmod +x "$work/bin/modprobe"

# asked TITLE PROC EXPECTED
asked() {
    : >"$work/calls"
    PATH=$work/bin:$PATH "$script" "$2" || { echo "$1: it failed" >&2; failed=1; }
    if [ "$(cat "$work/calls")" != "$3" ]; then
        printf '%s: it called\n%s\nand not\n%s\n' "$1" "$(cat "$work/calls")" "$3" >&2
        failed=1
    fi
}
modules="modprobe -abq nvidia nvidia-uvm"
cp "$work/bin/modprobe" "$work/bin/nvidia-modprobe"
asked "no driver" "$work/none" "$modules"

proc=$work/nvidia
mkdir -p "$proc/gpus/0000:01:00.0" "$proc/gpus/0000:02:00.0"
control="$modules
nvidia-modprobe -c 255
nvidia-modprobe -u -c 0"
asked "no GPU" "$proc" "$control"
printf 'Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n' >"$proc/gpus/0000:01:00.0/information"
printf 'Device Minor: \t 3\nGPU Excluded:\t No\n' >"$proc/gpus/0000:02:00.0/information"
asked "two GPUs" "$proc" "$control
nvidia-modprobe -c 0 -c 3"
instance=$proc/capabilities/gpu0/mig/gi1/access
mkdir -p "${instance%/*}" "$proc/capabilities/mig"
: >"$instance"
: >"$proc/capabilities/mig/config"
asked "an instance" "$proc" "$control
nvidia-modprobe -c 0 -c 3
nvidia-modprobe -f $instance"
exit $failed

#!/bin/bash
# The configuration as installed is valid as it is, and with every key uncommented (so each key in it
# exists and its default is allowed); a key that does not exist is refused.
# usage: config.sh GPUD FILE
set -euo pipefail
gpud=$1 file=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$gpud" --config "$file" --check-config

sed -E 's/^#([a-z_]+ =)/\1/' "$file" >"$work/all.conf"
if cmp -s "$file" "$work/all.conf"; then
    echo "no key was uncommented" >&2
    exit 1
fi
"$gpud" --config "$work/all.conf" --check-config

# So is the example of a tenant.
"$gpud" --config "${file%/*}/tenant.conf.example" --check-config
sed -E 's/^#([a-z_]+ =)/\1/; s/^groups = .*/groups = root/; s/^#(\[tenant)/\1/' \
    "${file%/*}/tenant.conf.example" >"$work/tenant.conf"
"$gpud" --config "$work/tenant.conf" --check-config
if printf '[tenant a]\nusers = no-such-user\n' >"$work/nobody.conf" &&
    "$gpud" --config "$work/nobody.conf" --check-config 2>"$work/said"; then
    echo "a user who is none was taken" >&2
    exit 1
fi
grep -q 'nobody.conf:2' "$work/said"

printf '[daemon]\nplanted_key = 1\n' >"$work/unknown.conf"
if "$gpud" --config "$work/unknown.conf" --check-config 2>"$work/said"; then
    echo "an unknown key was taken" >&2
    exit 1
fi
if ! grep -q 'unknown.conf:2' "$work/said"; then
    echo "the message does not name file and line:" >&2
    cat "$work/said" >&2
    exit 1
fi

# The environment sets the log's level and format. gpud and its launcher refuse unknown values, the
# launcher's processes warn of them: each process here ends for want of its descriptors.
for level in '' debug; do
    for format in '' text json; do
        GPUD_LOG=$level GPUD_LOG_FORMAT=$format "$gpud" --config "$file" --check-config
    done
done
told() { # WANTED STATUS VARIABLE=VALUE PROGRAM ARGUMENT...
    local wanted=$1 ends=$2 variable=$3 status=0 program=${gpud%/*}/$4
    shift 4
    env "$variable" "$program" "$@" 3<&- 4<&- 2>"$work/said" || status=$?
    if [ $status != "$ends" ] || [ "$(grep -c -- "$variable\|$wanted" "$work/said")" != 1 ] ||
        ! grep -q -- "$wanted" "$work/said"; then
        echo "$variable $program $* ended with $status:" >&2
        cat "$work/said" >&2
        exit 1
    fi
}
levels='GPUD_LOG = loud: not one of error, warn, info, debug'
formats='GPUD_LOG_FORMAT = xml: not one of text, json'
for bad in "GPUD_LOG=loud $levels" "GPUD_LOG_FORMAT=xml $formats"; do
    variable=${bad%% *} wanted=${bad#* }
    told "$wanted" 2 "$variable" gpud --config "$file" --check-config
    told "$wanted" 2 "$variable" gpud --config "$file" --runtime-dir "$work"
    told "$wanted" 2 "$variable" gpud-launcher --runtime-dir "$work"
    told "$wanted" 1 "$variable" gpud-monitor
    told "$wanted" 1 "$variable" gpud-compile --backend sim --device 0
    told "$wanted" 69 "$variable" gpud-worker --backend sim --device 0
done

# What is wrong on the command line is named.
refused() { # WANTED OPTION...
    local wanted=$1 status=0
    shift
    "$gpud" --config "$file" --check-config "$@" 2>"$work/said" || status=$?
    if [ $status != 2 ] || ! grep -q -- "$wanted" "$work/said"; then
        echo "$* ended with $status:" >&2
        cat "$work/said" >&2
        exit 1
    fi
}
refused '--set jobs.window: not KEY=VALUE' --set jobs.window
refused '--set: unknown setting jobs.windows' --set jobs.windows=4
refused '--set: window = many: not a number' --set jobs.window=many
refused '--backend: backend = none: not one of' --backend none
refused '--listen: .*nowhere' --listen nowhere
refused 'min_devices = 3: more than the devices in devices = 0,1' --devices 0,1 --set daemon.min_devices=3

# What cannot be written is no success.
for option in --check-config --version --help; do
    status=0
    "$gpud" --config "$file" $option >/dev/full 2>"$work/said" || status=$?
    if [ $status != 1 ] || ! grep -q 'writing the output: ' "$work/said"; then
        echo "$option >/dev/full ended with $status:" >&2
        cat "$work/said" >&2
        exit 1
    fi
done

#!/bin/bash
# The units are what systemd understands (verify says nothing about them) and are closed tightly.
# usage: units.sh DIR_WITH_UNITS
set -euo pipefail
units=${1:?usage: units.sh DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# verify wants the programs to exist; where they will be installed is not what is tested here.
mkdir "$work/bin" "$work/units"
for program in gpud gpud-launcher nvidia-devices; do
    printf '#!/bin/sh\n' >"$work/bin/$program"
    chmod +x "$work/bin/$program"
done
for unit in gpud gpud-launcher gpud-nvidia; do
    sed -E "s#^(Exec[A-Za-z]+=)[^ ]*/(gpud[a-z-]*|nvidia-devices)( |\$)#\\1$work/bin/\\2\\3#
        /^Documentation=/d" "$units/$unit.service" >"$work/units/$unit.service"
done

# verify exits 0 on unknown keys: what it says about our units counts. It also reads other units of
# the host, whose faults are not ours.
verify() {
    SYSTEMD_UNIT_PATH="$1:" systemd-analyze verify "$1"/*.service 2>&1 |
        grep -E 'gpud|^Failed' || true
}

said=$(verify "$work/units")
if [ -n "$said" ]; then
    echo "systemd-analyze verify: $said" >&2
    failed=1
fi

# ... and it does say something about a key that it does not know.
mkdir "$work/planted"
cp "$work/units/"*.service "$work/planted/"
sed -i 's/^\[Service\]/&\nPlantedKey=1/' "$work/planted/gpud.service"
if [ -z "$(verify "$work/planted")" ]; then
    echo "an unknown key was not noticed" >&2
    failed=1
fi

# Workers find the devices: they are made before the launcher starts, as soon as it is wanted.
for key in Wants After; do
    if ! grep -qx "$key=gpud-nvidia.service" "$units/gpud-launcher.service"; then
        echo "gpud-launcher.service: no $key=gpud-nvidia.service" >&2
        failed=1
    fi
done

# What a kernel prints is no line of ours, and none of them takes the host's memory or processes.
for unit in gpud gpud-launcher gpud-nvidia; do
    for key in SyslogLevelPrefix=no MemoryMax= TasksMax= SystemCallFilter= NoNewPrivileges=yes; do
        if ! grep -q "^$key" "$units/$unit.service"; then
            echo "$unit.service: no $key" >&2
            failed=1
        fi
    done
done

# The launcher changes users and has no other right; its workers run as a user of their own.
if [ "$(sed -n 's/^CapabilityBoundingSet=//p' "$units/gpud-launcher.service")" != \
    "CAP_SETUID CAP_SETGID" ] ||
    ! grep -qx 'SystemCallFilter=@setuid capset' "$units/gpud-launcher.service" ||
    ! grep -q '^ExecStart=.* --worker-user gpud-worker' "$units/gpud-launcher.service"; then
    echo "gpud-launcher.service: it may do more than change users, or does not" >&2
    failed=1
fi

# As many users and folders as --worker-users says; all in the group that the front refuses.
pool=$(sed -n 's/^ExecStart=.* --worker-users \([0-9]*\).*/\1/p' "$units/gpud-launcher.service")
users=$(grep -cE '^u gpud-worker[0-9]+ -:gpud-worker ' "$units/gpud.sysusers" || true)
folders=$(grep -cE '^d /var/cache/gpud-worker/[0-9]+ 0700 gpud-worker[0-9]+ gpud-worker ' \
    "$units/gpud.tmpfiles" || true)
if [ -z "$pool" ] || [ "$pool" -lt 8 ] || [ "$users" != "$pool" ] || [ "$folders" != "$pool" ]; then
    echo "gpud-launcher.service: --worker-users '$pool', but $users users and $folders folders" >&2
    failed=1
fi

exposure() {
    systemd-analyze security --offline=true --threshold="$2" "$work/units/$1.service" \
        >"$work/report" 2>&1 || {
        echo "$1: more exposed than $2 tenths" >&2
        grep -E '^✗' "$work/report" >&2 || cat "$work/report" >&2
        failed=1
    }
    grep 'Overall exposure' "$work/report" || true
}
exposure gpud 4
# With a network: the drop-in's lines behind the unit's, because --offline reads no drop-ins.
sed '/^\[Install\]/,$d' "$work/units/gpud.service" >"$work/units/gpud-remote.service"
grep -v '^\[' "$units/gpud-remote.conf" >>"$work/units/gpud-remote.service"
{
    sed '/^\[Install\]/,$d' "$work/units/gpud.service"
    grep -v '^\[' "$units/gpud-metrics.conf"
} >"$work/units/gpud-metrics.service"
grep -v 'IPAddressAllow=[0-9]' "$work/units/gpud-remote.service" >"$work/units/gpud-tcp.service"
exposure gpud-tcp 11
exposure gpud-remote 12 # a tenth for addresses that are not the host's own
exposure gpud-metrics 11
exposure gpud-launcher 13
exposure gpud-nvidia 27
exit $failed

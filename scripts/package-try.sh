#!/bin/bash
# Tries Debian's packages in a clean Debian 12: first in a root where nothing runs, then in one that boots a
# real systemd. They are installed without a device, used on PoCL, upgraded while a client computes
# (scripts/package-client.py), removed and purged, and nothing may be left. Needs root, the mirror that apt uses, and
# some minutes.
#   scripts/package-try.sh [--no-build]     build/package/1, 2 and 3 have the packages already
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/build/package
build=yes
case ${1:-} in
'') ;;
--no-build) build=no ;;
--inside) build=inside ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

if [ "$(id -u)" -ne 0 ]; then
    echo "package-try: it mounts and boots a root, which only root may" >&2
    exit 1
fi

step() { printf '== package-try, %d:%02d: %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"; }
fail() {
    echo "package-try: $1" >&2
    exit 1
}

if [ $build = no ]; then
    for revision in 1 2 3; do
        [ -n "$(find "$here/$revision" -name 'gpud_*.deb' 2>/dev/null)" ] ||
            fail "no packages in $here/$revision: run scripts/package-try.sh without --no-build first"
    done
fi

# Revision 2 is the same build, 3 another one.
if [ "$build" = yes ]; then
    scripts/deps.sh build package try
    packages() { # REVISION OPTION...
        local revision=$1
        shift
        step "packages of revision $revision"
        scripts/package-deb.sh --cuda-archs none --revision "$revision" --out "$here/$revision" "$@" \
            >"$here/log-$revision" 2>&1 || { cat "$here/log-$revision" >&2 && exit 1; }
    }
    mkdir -p "$here"
    packages 1
    packages 2 --again
    packages 3 --again --no-lintian --build another
fi
if [ "$build" != inside ]; then
    if [ ! -s "$here/root.tar" ]; then
        step "a clean Debian 12"
        sources=()
        [ ! -f /etc/apt/sources.list.d/debian.sources ] || sources=(/etc/apt/sources.list.d/debian.sources)
        mmdebstrap --quiet --format=tar --variant=apt --include=systemd-sysv,dbus,kmod bookworm "$here/root.new" "${sources[@]}"
        mv "$here/root.new" "$here/root.tar"
    fi
    # What is set for builds on this host means nothing in the root.
    exec env -u CMAKE_C_COMPILER_LAUNCHER unshare --mount scripts/package-try.sh --inside
fi

# From here on in a mount namespace of its own, which ends with all its mounts.
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
root=/mnt/root
mkdir -p "$here/archives/partial"

fresh_root() {
    rm -rf --one-file-system $root
    mkdir $root
    tar -C $root -xf "$here/root.tar"
    mkdir $root/packages
    cp /etc/resolv.conf $root/etc/resolv.conf
    # Packages of Debian are fetched once.
    echo 'APT::Keep-Downloaded-Packages "1";' >$root/etc/apt/apt.conf.d/99keep
}

packages() { # REVISION NAME...: their files, as the root sees them
    local revision=$1 name
    shift
    for name in "$@"; do
        (cd "$here" && ls "$revision/$name"_*.deb) | sed 's|^|/packages/|'
    done
}
apt() { run env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null; }
install() { # REVISION NAME... [-- OPTION...]
    local names=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    [ $# -eq 0 ] || shift
    mapfile -t files < <(packages "${names[@]}")
    apt "$@" install "${files[@]}"
}

# Files that have a name of ours, or an owner. The users themselves stay.
nothing_left() {
    local left
    left=$(run sh -c 'find / /run /dev/shm /tmp -xdev \( -path /packages -o -path /var/cache/apt \) -prune \
        -o -printf "%u %p\n"' | grep -E '^gpud|/[^/]*(gpud|gpuctl)[^/]*$' | sort -u || true)
    [ -z "$left" ] || fail "left after the purge:
$left"
    left=$(run dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep gpu || true)
    [ -z "$left" ] || fail "dpkg still knows: $left"
}

all=(gpud gpuctl libgpud0 libgpud-dev python3-gpud gpud-doc)

without_systemd() {
    step "a root where nothing runs: installed, used by an ordinary user, purged"
    fresh_root
    mount --bind "$here" $root/packages
    mount --bind "$here/archives" $root/var/cache/apt/archives
    mount -t proc proc $root/proc
    mount --bind /dev $root/dev
    mount -t tmpfs tmpfs $root/dev/shm
    run() { chroot $root "$@"; }
    apt update
    install 1 "${all[@]}" -- --no-install-recommends
    run getent passwd gpud gpud-worker gpud-worker0 gpud-worker63 >/dev/null || fail "a user is missing"
    [ "$(run stat -c '%U %a' /var/cache/gpud-worker/63)" = 'gpud-worker63 700' ] || fail "the folder of a worker is missing"
    run gpud --check-config
    run runuser -u nobody -- sh /packages/tests/simulated
    apt purge "${all[@]}"
    nothing_left
    umount -R $root/packages $root/var/cache/apt/archives $root/dev $root/proc
}

# What the service said, where something failed.
ended() {
    [ "$1" -eq 0 ] || run journalctl --no-pager -o cat -u gpud -u gpud-launcher | tail -n 40 >&2 || true
    kill "$nspawn" 2>/dev/null || true
    wait
}

# Boots the root; `run` then runs in it.
boot() {
    mkdir -p /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    : >$root/etc/machine-id
    # Workers confine themselves by Landlock, which nspawn refuses by itself.
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --quiet \
        --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" --register=no --keep-unit --console=pipe -D $root \
        --bind="$here:/packages" --bind="$here/archives:/var/cache/apt/archives" --boot \
        systemd.unit=multi-user.target </dev/null >"$here/log-boot" 2>&1 &
    nspawn=$!
    trap 'ended $?' EXIT
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        kill -0 $nspawn 2>/dev/null || break
        leader=$(ps -o pid= --ppid $nspawn | head -n 1 | tr -d ' ' || true)
        if [ -n "$leader" ] && [ -S "/proc/$leader/root/run/systemd/private" ]; then
            run() { nsenter --all --target "$leader" --root --wd "$@"; }
            run systemctl is-system-running --wait || true
            return
        fi
        sleep 0.2
    done
    cat "$here/log-boot" >&2
    fail "systemd does not boot"
}

launcher() { run systemctl show --property=MainPID --value gpud-launcher.service; }
expect_state() { # STATE
    local state
    state=$(run systemctl is-active gpud.service || true)
    [ "$state" = "$1" ] || fail "gpud.service is $state, not $1: $(run systemctl status --no-pager -l gpud.service || true)"
}

# An ordinary user's client computes across an upgrade.
rounds() { cat "$here/client/rounds" 2>/dev/null || echo 0; }
client_reaches() { # ROUNDS
    local tries
    for ((tries = 0; $(rounds) < $1; tries++)); do
        if [ $tries -eq 1000 ] || ! kill -0 $client 2>/dev/null; then
            fail "the client does not go on after $(rounds) rounds"
        fi
        sleep 0.2
    done
}
client_begin() { # OPTION...
    rm -rf "$here/client"
    mkdir -m 777 "$here/client"
    run setpriv --reuid=nobody --regid=nogroup --groups=gpud \
        python3 /packages/tests/package-client.py /packages/client "$@" &
    client=$!
    client_reaches 100
}
client_end() {
    client_reaches $(($(rounds) + 100))
    touch "$here/client/stop"
    wait $client || fail "the client failed across the upgrade"
}

with_systemd() {
    step "a real systemd: installed without a device"
    fresh_root
    boot
    apt update
    install 1 gpud gpuctl libgpud0 -- --no-install-recommends
    expect_state activating
    run systemctl is-enabled --quiet gpud.service || fail "gpud.service is not enabled"
    run gpuctl doctor >"$here/log-doctor" && fail "gpuctl doctor finds a device where there is none"

    step "PoCL comes, and the rest: status, demo, Python, a project outside of the tree"
    # apt adds nothing to what gpud recommended before.
    apt --no-install-recommends install pocl-opencl-icd ocl-icd-libopencl1 python-matplotlib-data
    install 1 "${all[@]}" -- --no-install-recommends
    for test in serves builds simulated; do
        if [ $test = builds ]; then
            apt --no-install-recommends install gcc libc6-dev pkg-config cmake make
        fi
        run sh "/packages/tests/$test"
    done
    expect_state active
    echo '# of this host' >>$root/etc/gpud/gpud.conf
    printf '[daemon]\nlog_level = info\n' >$root/etc/gpud/gpud.conf.d/host.conf

    step "upgraded to another revision of the same build: workers stay, and a client that computes notices nothing"
    before=$(launcher)
    client_begin --same-build
    install 2 "${all[@]}" -- -o Dpkg::Options::=--force-confdef
    expect_state active
    [ "$(launcher)" = "$before" ] || fail "the launcher ended with an upgrade of the same build"
    client_end
    grep -q '# of this host' $root/etc/gpud/gpud.conf || fail "the upgrade replaced gpud.conf"
    run gpuctl status

    step "upgraded to another build: all is new, and the client's answers are right"
    client_begin
    install 3 "${all[@]}" -- -o Dpkg::Options::=--force-confdef
    expect_state active
    [ "$(launcher)" != "$before" ] || fail "the launcher of the former build still runs"
    client_end
    run gpud --version | grep -q 'build .*another' || fail "it is not the build that was installed"
    run gpuctl status

    step "removed: settings and data stay; purged: nothing does"
    apt remove "${all[@]}"
    # shellcheck disable=SC2016 # of the shell in the root
    ! run sh -c 'for p in /proc/[0-9]*; do readlink "$p/exe"; done' | grep gpud || fail "processes run on after the removal"
    [ -e $root/etc/gpud/gpud.conf ] || fail "the removal took the settings"
    [ -e $root/var/lib/gpud ] || fail "the removal took the data"
    run dpkg --purge "${all[@]}" # apt knows those no more that left nothing
    nothing_left
    kill $nspawn
    wait $nspawn || true
}

mkdir -p "$here/tests"
cp packaging/debian/tests/[sb]* scripts/package-client.py "$here/tests"
without_systemd
with_systemd
step "passed"

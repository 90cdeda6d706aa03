#!/bin/sh
# Installs the Debian packages of the given groups (scripts/packages.txt) that are missing.
# Asks for root only when something is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

wanted=
for group in "$@"; do
    packages=$(sed -n "s/^$group  *//p" "$here/packages.txt" | tr '\n' ' ')
    if [ -z "$packages" ]; then
        echo "deps: no group '$group' in scripts/packages.txt, which has:" \
            "$(sed -n 's/^\([a-z]*\) .*/\1/p' "$here/packages.txt" | uniq | tr '\n' ' ')" >&2
        exit 2
    fi
    wanted="$wanted $packages"
done

if ! command -v dpkg-query >/dev/null; then
    echo "deps: this is no Debian. Install what these packages hold:$wanted" >&2
    exit 1
fi

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps: not root and no sudo. Ask an administrator for" >&2
        echo "  apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "deps: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # the lists are words
{
    $as_root apt-get -q update
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y --no-install-recommends install $missing
} >&2

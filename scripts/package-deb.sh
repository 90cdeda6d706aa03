#!/bin/bash
# Builds Debian's packages from a copy of this tree, without the network, and asks lintian.
#   scripts/package-deb.sh [OPTION...]
#     --out DIR         where the packages go; build/package/out
#     --revision N      of Debian's version; the newest entry of packaging/debian/changelog has the default
#     --cuda-archs A    GPUs that built-in kernels are compiled for, where there is nvcc: all (minutes), none, a list
#     --build NAME      what tells this build from others; a hash of the sources
#     --again           from the copy that is there, with what is built of it: no source package
#     --no-lintian      not asked
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/build/package/out
revision=
archs=all
lintian=yes
again=no
what=--build=full
usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --out | --revision | --cuda-archs | --build)
        if [ $# -eq 1 ]; then
            echo "package-deb: $1 needs a value" >&2
            usage
        fi
        ;;
    esac
    case $1 in
    --out) mkdir -p "$2" && out=$(cd "$2" && pwd) && shift ;;
    --revision)
        [[ $2 =~ ^[1-9][0-9]*$ ]] || { echo "package-deb: --revision $2: not a number from 1 on" >&2 && exit 2; }
        revision=$2 && shift
        ;;
    --cuda-archs) archs=$2 && shift ;;
    --build) export GPUD_BUILD=$2 && shift ;;
    --again) again=yes && what='--build=binary --no-pre-clean' ;;
    --no-lintian) lintian=no ;;
    *) usage ;;
    esac
    shift
done

scripts/deps.sh build package

version=$(sed -n '1s/^gpud (\(.*\)-[^-]*) .*/\1/p' packaging/debian/changelog)
header=$(sed -n 's/^#define GPUD_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' client/include/gpud/gpud.h | paste -sd.)
if [ "$version" != "$header" ]; then
    echo "package-deb: packaging/debian/changelog is of $version, gpud.h of $header" >&2
    exit 1
fi

# The same folder each time, so that a compiler cache knows the files again.
work=$PWD/build/package/work
tree=$work/gpud-$version
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)
export SOURCE_DATE_EPOCH

stage() {
    rm -rf "$work"
    mkdir -p "$tree"
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard
    else
        find . -name build -prune -o -type f -print0
    fi | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
        tar --null --files-from=- -cf - | tar -C "$tree" -xf -
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "gpud-$version" | gzip -n >"$work/gpud_$version.orig.tar.gz"
}
if [ $again = no ]; then
    stage
elif [ ! -d "$tree" ]; then
    echo "package-deb: --again: there is no copy in $tree: run scripts/package-deb.sh without it first" >&2
    exit 1
fi
mkdir -p "$out" "$tree/debian"
cp -r packaging/debian/. "$tree/debian"
rm -rf "$tree/debian/debhelper-build-stamp" "$tree/debian/files" "$tree/.pybuild"
newest=$(sed -n '1s/.*-\([^-)]*\)) .*/\1/p' packaging/debian/changelog)
if [ -n "$revision" ] && [ "$revision" != "$newest" ]; then
    {
        printf 'gpud (%s-%s) unstable; urgency=medium\n\n  * Built as revision %s.\n\n' "$version" "$revision" "$revision"
        printf '%s  %s\n\n' "$(sed -n 's/^\( -- .*>\).*/\1/p;T;q' packaging/debian/changelog)" \
            "$(date -R -u -d "@$((SOURCE_DATE_EPOCH + revision))")"
        cat packaging/debian/changelog
    } >"$tree/debian/changelog"
fi

if command -v ccache >/dev/null; then
    CCACHE_DIR=$(ccache --get-config cache_dir) # debhelper changes HOME
    export CCACHE_DIR CMAKE_C_COMPILER_LAUNCHER=ccache
fi
export GPUD_CUDA_ARCHS=$archs
export PATH=/usr/sbin:/usr/bin:/sbin:/bin # Debian's Python and no other
# shellcheck disable=SC2086 # words
if ! (cd "$tree" && dpkg-buildpackage -us -uc $what) >"$work/log" 2>&1; then
    tail -n 60 "$work/log" >&2
    echo "package-deb: the whole log is $work/log" >&2
    exit 1
fi
# DIR may be a folder of the user's: only former packages go.
find "$out" -maxdepth 1 -type f -regextype posix-extended \
    -regex '.*/(lib|python3-)?gpu(d|ctl)[a-z0-9-]*_[0-9].*\.(deb|dsc|changes|buildinfo|tar\.[gx]z)' -delete
find "$work" -maxdepth 1 -type f -name '*gpu*' -exec mv -t "$out" {} +

# Tags of Debian's archive, for which these packages are not meant: there is no bug that asks for them, and the
# maintainers' address is no public one.
not_meant=initial-upload-closes-no-bugs,bogus-mail-host
if [ "$lintian" = yes ]; then
    lintian --suppress-tags "$not_meant" --fail-on error,warning --display-info --pedantic "$out"/*.changes
fi
ls -l "$out"/*.deb

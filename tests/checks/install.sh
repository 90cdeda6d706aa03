#!/bin/bash
# Installs a build into a folder of its own and looks at it as a user would: the files are there, a
# C program finds the library by pkg-config and by CMake, only gpud_* is exported.
# Debian's packages hold the same files.
# usage: install.sh BUILD_DIR
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/usr

cmake --install "$build" --prefix "$prefix" >"$work/log"

failed=0
missing() {
    echo "not installed: $1" >&2
    failed=1
}
while read -r path; do
    compgen -G "$prefix/$path" >/dev/null || missing "$path"
done <<'LIST'
lib/systemd/system/gpud.service
lib/systemd/system/gpud-launcher.service
lib/systemd/system/gpud-nvidia.service
libexec/gpud/nvidia-devices
lib/sysusers.d/gpud.conf
lib/tmpfiles.d/gpud.conf
etc/gpud/gpud.conf
etc/gpud/tenants.d
etc/logrotate.d/gpud
lib/systemd/catalog/gpud.catalog
share/doc/*/tenant.conf.example
share/doc/*/docs/operating.md
share/doc/*/proto/PROTOCOL.md
share/doc/*/examples/kernels/saxpy.cl
LIST

# What is built is installed.
installed() { # PROGRAM FOLDER
    if [ -x "$build/bin/$1" ] && [ ! -x "$prefix/$2/$1" ]; then
        missing "$2/$1"
    fi
}
for program in gpud gpuctl; do
    installed $program bin
done
for program in gpud-launcher gpud-worker gpud-compile gpud-monitor gpud-demo; do
    installed $program libexec/gpud
    if [ -e "$prefix/bin/$program" ]; then
        echo "bin/$program: users do not start it" >&2
        failed=1
    fi
done

# The daemon finds its helpers where they are installed: it gets as far as having a device.
if [ -x "$prefix/bin/gpud" ] && [ -x "$prefix/libexec/gpud/gpud-launcher" ]; then
    run=$work/run
    mkdir "$run"
    "$prefix/bin/gpud" --backend sim --runtime-dir "$run" --cache-dir "$run/cache" \
        --listen "ipc://$run/gpud.sock" >"$work/gpud.log" 2>&1 &
    daemon=$!
    for _ in $(seq 100); do
        grep -q 'gpud: ready' "$work/gpud.log" && break
        kill -0 $daemon 2>/dev/null || break
        sleep 0.1
    done
    if ! grep -q 'gpud: ready' "$work/gpud.log"; then
        echo "an installed gpud does not serve:" >&2
        cat "$work/gpud.log" >&2
        failed=1
    fi
fi

# gpuctl finds its example where it is installed, and names it where it is not.
if [ -x "$prefix/bin/gpuctl" ] && [ -x "$prefix/bin/gpud" ]; then
    demo() { # PROGRAM WORDS of the message
        printf 'no image' >"$work/image"
        "$1" -u "ipc://$run/gpud.sock" demo --image "$work/image" -f "$work/edges.png" 2>"$work/said" || true
        grep -qF -- "$2" "$work/said" || { echo "gpuctl demo: '$2' is not in: $(cat "$work/said")" >&2; failed=1; }
    }
    demo "$prefix/bin/gpuctl" 'gpuctl: demo: '"$work/image"': neither JPEG nor PNG'
    cp "$prefix/bin/gpuctl" "$work/gpuctl"
    LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name libgpud.so)") demo "$work/gpuctl" 'gpud-demo is neither in'
fi
if [ -n "${daemon:-}" ]; then
    kill "$daemon" 2>/dev/null && wait "$daemon"
fi

library=$(find "$prefix" -name 'libgpud.so' -print -quit)
if [ -z "$library" ]; then
    if compgen -G "$build/lib/libgpud.so" >/dev/null; then
        missing libgpud.so
    fi
    exit $failed
fi

if nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | grep -v '^gpud_' >&2; then
    echo "exported beside gpud_*" >&2
    failed=1
fi
if ! readelf -d "$library" | grep -q 'SONAME.*libgpud\.so\.[0-9]'; then
    echo "no soname with a version" >&2
    failed=1
fi

# Packages divide all of it, and the check notices what they lack.
if command -v python3 >/dev/null; then
    here=$(cd "$(dirname "$0")" && pwd)
    python3 "$here/packages.py" "$prefix" || failed=1
    cp -r "$here/../../packaging/debian" "$work/debian"
    sed -i '/gpud-worker/d' "$work/debian/gpud.install"
    echo 'usr/bin/gpuctl' >>"$work/debian/gpud.install"
    sed -i '/gpud_open@/d' "$work/debian/libgpud0.symbols"
    python3 "$here/packages.py" "$prefix" "$work/debian" 2>"$work/said" && { echo "packages.py notices nothing" >&2; failed=1; }
    for word in 'gpud-worker: in no package' 'gpuctl: in gpuctl and gpud' 'gpud_open is missing'; do
        grep -q "$word" "$work/said" || { echo "packages.py does not say: $word" >&2; failed=1; }
    done
fi

cat >"$work/main.c" <<'C'
#include <gpud/gpud.h>
#include <stdio.h>

int main(void)
{
    return puts(gpud_strerror(GPUD_ERR_BUSY)) < 0;
}
C
libdir=$(dirname "$library")
export PKG_CONFIG_PATH=$libdir/pkgconfig
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs gpud)
# shellcheck disable=SC2086 # flags are words
${CC:-cc} -std=c11 -Wall -Werror -o "$work/by-pkg-config" "$work/main.c" $flags
LD_LIBRARY_PATH=$libdir "$work/by-pkg-config"

# The example of the README is the first program that anyone compiles.
# shellcheck disable=SC2016 # back quotes of markdown
sed -n '/^```c$/,/^```$/p' "$(dirname "$0")/../../README.md" | sed '/^```/d' >"$work/readme.c"
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -Wall -Wextra -Werror -o "$work/readme" "$work/readme.c" $flags
if command -v c++ >/dev/null; then
    cp "$work/main.c" "$work/main.cc"
    # shellcheck disable=SC2086
    c++ -std=c++17 -Wall -Werror -o "$work/by-cxx" "$work/main.cc" $flags
fi

cat >"$work/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(gpud REQUIRED)
add_executable(user main.c)
target_link_libraries(user PRIVATE gpud::gpud)
CMAKE
cmake -S "$work" -B "$work/b" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log"
cmake --build "$work/b" >"$work/log"
"$work/b/user"

# Uninstalling as README.md says leaves no file.
xargs rm -f <"$build/install_manifest.txt"
if find "$prefix" -type f -o -type l | grep . >&2; then
    echo "still there after uninstalling" >&2
    failed=1
fi
exit $failed

#!/bin/sh
# check_header.sh SOURCE_DIR: the public header stands alone in C99, C11 and C++17, and only gpud_*
# names leave the library (given as LIBRARY).
set -eu
include=$1/client/include
for std in c99 c11; do
    echo '#include <gpud/gpud.h>' |
        "${CC:-cc}" -std=$std -pedantic -Wall -Wextra -Werror -I"$include" -xc -fsyntax-only -
done
if command -v c++ >/dev/null; then
    echo '#include <gpud/gpud.h>' |
        c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$include" -xc++ -fsyntax-only -
fi
if [ $# -gt 1 ]; then
    strangers=$(nm -D --defined-only "$2" | awk '$2 != "A" && $3 !~ /^gpud_/ {print $3}')
    [ -z "$strangers" ] || { echo "exported: $strangers" >&2; exit 1; }
    nm -D --defined-only "$2" | grep -q ' gpud_open'
fi

#include "daemon/backend/cuda/source/predefined.h"

#include <string.h>

#include "daemon/backend/cuda/source/lex.h"

/* Behind the second blank line the names that the user's text gets. */
const char *const predefined_options[] = {
    "-D__linux__=1",
    "-D__linux=1",
    "-D__gnu_linux__=1",
    "-D__unix__=1",
    "-D__unix=1",

    "-D_LP64=1",
    "-D__x86_64__=1",
    "-D__x86_64=1",
    "-D__amd64__=1",
    "-D__amd64=1",
    "-D__ORDER_LITTLE_ENDIAN__=1234",
    "-D__ORDER_BIG_ENDIAN__=4321",
    "-D__ORDER_PDP_ENDIAN__=3412",
    "-D__BYTE_ORDER__=1234",
    "-D__FLOAT_WORD_ORDER__=1234",
    "-D__CHAR_BIT__=8",
    "-D__LITTLE_ENDIAN=1234", /* the C library's spelling, which the runtime's header brings */
    "-D__BIG_ENDIAN=4321",
    "-D__PDP_ENDIAN=3412",
    "-D__BYTE_ORDER=1234",
    "-D__WORDSIZE=64",
    "-D__SCHAR_MAX__=127",
    "-D__SHRT_MAX__=32767",
    "-D__INT_MAX__=2147483647",
    "-D__LONG_MAX__=9223372036854775807L",
    "-D__LONG_LONG_MAX__=9223372036854775807LL",
    "-D__SIZEOF_SHORT__=2",
    "-D__SIZEOF_INT__=4",
    "-D__SIZEOF_LONG__=8",
    "-D__SIZEOF_LONG_LONG__=8",
    "-D__SIZEOF_POINTER__=8",
    "-D__SIZEOF_SIZE_T__=8",
    "-D__SIZEOF_PTRDIFF_T__=8",
    "-D__SIZEOF_WCHAR_T__=4",
    "-D__SIZEOF_FLOAT__=4",
    "-D__SIZEOF_DOUBLE__=8",

    "-D__nvcc__=1",
    "-D__gnuc__=12",
    "-D__gnug__=12",
    "-D__GNUC_MINOR__=2",
    "-D__GNUC_PATCHLEVEL__=0",
    /* what such a compiler takes, and NVRTC by another name */
    "-D__asm=asm",
    "-D__asm__=asm",
    "-D__builtin_popcount=__popc",
    "-D__builtin_popcountll=__popcll",
    "-D__builtin_clz=__clz",
    "-D__builtin_clzll=__clzll",
    /* and attributes that it would leave out with a warning: a struct would have another layout */
    "--diag-error=1097,1835,1866",
    NULL,
};
_Static_assert(sizeof predefined_options / sizeof predefined_options[0] <= PREDEFINED_MAX + 1,
               "arguments have room for so many");

static const struct {
    const char *word, *name;
} renamed[] = {{"__NVCC__", "__nvcc__"}, {"__GNUC__", "__gnuc__"}, {"__GNUG__", "__gnug__"}};

void predefined_rename(char *text)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_HASH};
    lex_init(&lex, text, "");
    while (lex_next(&lex, &t, NULL) == 0 && t.kind != LEX_END) {
        for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++) {
            if (lex_is(&t, renamed[i].word)) {
                memcpy(text + (t.text - text), renamed[i].name, t.size); /* t.text is const */
            }
        }
    }
}

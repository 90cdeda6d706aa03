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
    "-D__SIZEOF_INT128__=16",
    "--device-int128",

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
    const char *word, *core, *name;
} renamed[] = {{"__NVCC__", "NVCC", "__nvcc__"},
               {"__GNUC__", "GNUC", "__gnuc__"},
               {"__GNUG__", "GNUG", "__gnug__"}};

/* Which of them the word is, or may become with more underscores; -1: none. */
static int word_find(const struct lex_token *t)
{
    struct lex_token core = *t;
    for (; core.size > 0 && core.text[0] == '_'; core.text++) {
        core.size--;
    }
    while (core.size > 0 && core.text[core.size - 1] == '_') {
        core.size--;
    }
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++) {
        if (lex_is(&core, renamed[i].core)) {
            return (int)i;
        }
    }
    return -1;
}

/* Does a macro of that name hold # or ##? */
static bool macro_joins(const char *text, const struct lex_token *name)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_END};
    bool define = false;
    bool inside = false;
    lex_init(&lex, text, "");
    while (name->kind == LEX_WORD && lex_next(&lex, &t, NULL) == 0 && t.kind != LEX_END) {
        inside = define ? lex_equal(&t, name) : inside && t.word > 0;
        if (inside && lex_is(&t, "#")) {
            return true;
        }
        define = lex_is(&t, "define");
    }
    return false;
}

#define CALLS_MAX 16u /* parentheses, one inside of another */

/* What parentheses are open, by the words before them. */
struct calls {
    struct lex_token caller[CALLS_MAX];
    unsigned depth;
};

static void calls_step(struct calls *c, const struct lex_token *before, const struct lex_token *t)
{
    if (lex_is(t, "(")) {
        c->caller[c->depth < CALLS_MAX ? c->depth : CALLS_MAX - 1] = *before;
        c->depth++;
    } else if (t->kind == LEX_HASH) {
        c->depth = 0;
    } else if (lex_is(t, ")") && c->depth > 0) {
        c->depth--;
    }
}

/* Is the word, one of ours, given to a macro that holds # or ##? */
static bool calls_join(const char *text, const struct calls *c)
{
    bool joined = false;
    for (unsigned i = 0; !joined && i < c->depth && i < CALLS_MAX; i++) {
        joined = macro_joins(text, &c->caller[i]);
    }
    return joined;
}

int predefined_rename(char *text, const char *file, struct err *e)
{
    struct lex lex;
    struct lex_token t = {.kind = LEX_HASH};
    struct lex_token before = t;
    struct calls calls = {.depth = 0};
    int known_before = -1;
    lex_init(&lex, text, file);
    while (lex_next(&lex, &t, NULL) == 0 && t.kind != LEX_END) {
        int known = t.kind == LEX_WORD ? word_find(&t) : -1;
        bool joined = known >= 0 && (lex_is(&before, "#") || calls_join(text, &calls));
        if (joined || (known_before >= 0 && lex_is(&t, "#"))) {
            const struct lex_token *word = joined ? &t : &before;
            return lex_refuse(text, file, word, e, "", bytes_of(word->text, word->size),
                              " is made a text of or put together with another word, which is not "
                              "supported: write out what is meant");
        }
        if (known >= 0 && lex_is(&t, renamed[known].word)) {
            memcpy(text + (t.text - text), renamed[known].name, t.size); /* t.text is const */
        }
        calls_step(&calls, &before, &t);
        before = t;
        known_before = known;
    }
    return 0;
}

/*
 * Tokens of CUDA C, in the detail that refusals and reports need. It is exact about the ends of
 * comments and literals, since a difference from the compiler could hide an #include; uncertain
 * text is refused. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_LEX_H
#define BACKEND_CUDA_SOURCE_LEX_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/err.h"

#define LEX_PLACE 224u /* bytes of a place */

enum lex_kind {
    LEX_END,
    LEX_WORD,
    LEX_NUMBER,
    LEX_LITERAL, /* a string or a character; its text is with the quotes */
    LEX_SIGN,    /* one character */
    LEX_HASH,    /* begins a directive */
};

struct lex_token {
    enum lex_kind kind;
    const char *text; /* in the source */
    size_t size;
    unsigned line, column; /* from 1, of the source as given: see lex_place */
    bool first;            /* of its line, continued lines being one */
    unsigned word;         /* of a directive: which of its tokens, "#" being 1; 0: of none */
    bool glued;            /* it directly follows the token before */
};

struct lex {
    const char *begin, *at, *end;
    const char *line_start;
    unsigned line;
    const char *file; /* for messages */
    const char *last; /* end of the token before */
    unsigned word;    /* of that */
};

/* A copy for the compiler: terminated, with line ends as "\n", other carriage returns as blanks,
 * and
 * "@" for bytes that are not UTF-8, of which compilers might take the next one along.
 * ERR_COMPILE for what lex_next cannot be sure of: NUL, the trigraphs of # and \. */
int lex_normalize(struct bytes source, const char *file, char **ret_text, struct err *e);

void lex_init(struct lex *l, const char *text, const char *file);
/* ERR_COMPILE "file:line:column: error: …" for raw strings, a backslash that ends a line but for
 * blanks, and words that are continued on the next line. */
int lex_next(struct lex *l, struct lex_token *ret_token, struct err *e);
/* The header that an #include or __has_include names: <name> with `angle`, or "name"; else an empty
 * view (a macro). Called right after the word was taken. */
struct bytes lex_header(struct lex *l, bool *ret_angle);

/* Where line `line` of the text is from, as "file:line": what the last "#line N "NAME"" before it
 * says, as gpuctl writes them for headers that it put in. Always terminated. */
void lex_place(const char *text, const char *file, unsigned line, char *out, size_t size);

/* Sets ERR_COMPILE "file:line:column: error: WHAT NAME ADVICE" for a token of the text, with no
 * blanks put in, and returns it. */
int lex_refuse(const char *text, const char *file, const struct lex_token *t, struct err *e,
               const char *what, struct bytes name, const char *advice);

bool lex_is(const struct lex_token *t, const char *text); /* word or sign */
bool lex_integer(const struct lex_token *t); /* a word of an integer type: unsigned, short, … */
/* An attribute or another word that has parentheses of its own, which are no function's. */
bool lex_takes_parens(const struct lex_token *t);

#endif

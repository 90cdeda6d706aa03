/*
 * Splits CUDA C into tokens, in the detail that refusals and reports need. It is exact about the
 * ends of comments and literals, because a difference from the compiler could hide an #include;
 * uncertain text is refused. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_LEX_H
#define BACKEND_CUDA_SOURCE_LEX_H

#include <stdbool.h>
#include <stddef.h>

#include "common/bytes.h"
#include "common/err.h"

#define LEX_PLACE 224u /* bytes of a place, including the NUL */

enum lex_kind {
    LEX_END,
    LEX_WORD,
    LEX_NUMBER,
    LEX_LITERAL, /* a string or a character; its text includes the quotes */
    LEX_SIGN,    /* one character */
    LEX_HASH,    /* begins a directive */
};

struct lex_token {
    enum lex_kind kind;
    const char *text; /* points into the source */
    size_t size;
    unsigned line, column; /* from 1, in the source as given; see lex_place */
    bool first;            /* the first of its line, where continued lines count as one */
    unsigned word;         /* its index in a directive, where "#" is 1; 0: not in a directive */
    bool glued;            /* it directly follows the previous token */
};

struct lex {
    const char *begin, *at, *end;
    const char *line_start;
    unsigned line;
    const char *file; /* for messages */
    const char *last; /* end of the previous token */
    unsigned word;    /* `word` of the previous token */
};

/* Makes a NUL-terminated copy for the compiler. Line ends become "\n", other carriage returns
 * become blanks, and bytes that are not UTF-8 become "@", because compilers might swallow the
 * byte after them. ERR_COMPILE for text that lex_next cannot be sure of: NUL, the trigraphs of #
 * and \. */
int lex_normalize(struct bytes source, const char *file, char **ret_text, struct err *e);

void lex_init(struct lex *l, const char *text, const char *file);
/* Reads the next token. ERR_COMPILE "file:line:column: error: …" for raw strings, a backslash
 * with blanks before the end of its line, and words that are continued on the next line. */
int lex_next(struct lex *l, struct lex_token *ret_token, struct err *e);
/* Reads the header that an #include or __has_include names: <name> sets *ret_angle, "name"
 * clears it. Returns an empty view for anything else (a macro). To be called right after the
 * word was read. */
struct bytes lex_header(struct lex *l, bool *ret_angle);

/* Finds where line `line` of the text comes from, as "file:line", by the last "#line N "NAME""
 * before it. gpuctl writes those for headers that it inserted. Always NUL-terminated. */
void lex_place(const char *text, const char *file, unsigned line, char *out, size_t size);

/* Sets ERR_COMPILE "file:line:column: error: WHAT NAME ADVICE" for a token, without adding
 * blanks, and returns it. */
int lex_refuse(const char *text, const char *file, const struct lex_token *t, struct err *e,
               const char *what, struct bytes name, const char *advice);

bool lex_is(const struct lex_token *t, const char *text); /* is it that word or sign? */
/* is it a word of an integer type: unsigned, short, …? */
bool lex_integer(const struct lex_token *t);
/* Is it an attribute or another word with parentheses of its own, which are not a function's? */
bool lex_takes_parens(const struct lex_token *t);

#endif

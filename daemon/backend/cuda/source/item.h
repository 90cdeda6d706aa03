/*
 * A CUDA C source as the declarations it is made of, by its tokens alone: nothing is preprocessed.
 * What cannot be told apart is ITEM_OTHER or refused as a whole. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_ITEM_H
#define BACKEND_CUDA_SOURCE_ITEM_H

#include "daemon/backend/cuda/source/lex.h"

enum item_kind {
    ITEM_OTHER, /* stays: using namespace, static_assert, what was not understood */
    ITEM_FUNCTION,
    ITEM_VARIABLE,
    ITEM_TYPE, /* with a body, or an alias */
    ITEM_MACRO,
};

/* One declaration of a namespace, or one #define. Tokens are those of its array: code, or macros.
 */
struct item {
    enum item_kind kind;
    size_t begin, end; /* tokens */
    size_t body;       /* of a function: "{", or the ":" of a constructor; 0: it has none */
    size_t params;     /* of a function: the "(" of its parameters */
    bool device;       /* __global__, __device__, … */
    bool constant; /* const or constexpr, or its type is to be found by its body; a macro: has it */
    bool overloads; /* an operator: it has no name to be found by */
    bool kept;      /* of whoever uses the items */
    unsigned space; /* of items.space */
};

/* Items of one name share it. */
struct item_name {
    struct bytes text;
    unsigned item;
};

struct item_tokens {
    struct lex_token *token; /* owned */
    size_t count, capacity;
};

struct item_range {
    size_t begin, end; /* tokens */
};

/* A namespace; 0 is the global one. */
struct item_space {
    unsigned parent;
    struct item_range name; /* tokens; empty: it is looked through from outside */
};

#define ITEM_LOOSE_MAX 64u

struct items {
    struct item_tokens code;   /* without directives */
    struct item_tokens macros; /* those of #define, from the name on */
    struct item *item;         /* owned; code first, in the source's order, then macros */
    unsigned count;
    size_t capacity;
    struct item_name *name; /* owned; sorted */
    size_t name_count, name_capacity;
    struct item_space *space; /* owned */
    unsigned space_count;
    size_t space_capacity;
    struct item_range
        loose[ITEM_LOOSE_MAX]; /* from an #if that leaves braces open to what closes */
    unsigned loose_count;
};

/* false: it cannot be told where declarations end (braces differ between branches of an #if), or it
 * is too large, or there is no memory. */
bool items_read(const char *text, struct items *ret_items);
void items_finish(struct items *s);

/* false: no memory, or too many for a source. */
bool item_tokens_add(struct item_tokens *s, const struct lex_token *t);

/* Of what the word names the one behind `last`, or the first one for NULL; NULL: there is none. */
struct item *items_next(const struct items *s, const struct lex_token *t, const struct item *last);
/* Those of `item`: of code, or of macros. */
const struct lex_token *items_tokens(const struct items *s, const struct item *item);

/* Behind the last token that says what it is: its body, or its value, comes next. */
size_t item_head_end(const struct lex_token *t, const struct item *item);
bool item_for_host(const struct item *item); /* a function that no device code can call */

/* A declaration of a class's body. Returns where the next one begins. */
size_t item_read_member(const struct lex_token *t, size_t begin, size_t end, struct item *ret_item);
/* Behind the bracket that closes the one at `at`; `end` if nothing does. */
size_t item_skip(const struct lex_token *t, size_t at, size_t end);
/* Behind the "<…>" that begins at `at`; `at` if none does. */
size_t item_skip_angles(const struct lex_token *t, size_t at, size_t end);
/* Behind what begins at `at`: at a "," or at `end`. */
size_t item_skip_argument(const struct lex_token *t, size_t at, size_t end);

#endif

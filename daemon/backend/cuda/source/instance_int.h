/*
 * What the files that find instances share. Nothing outside this folder includes it.
 *
 * instance_head.c reads what a template is, instance_words.c writes what the source says so that it
 * means the same at its end, instance_probe.c makes the declarations that tell what a compiler
 * deduces, instance.c looks for mentions.
 */
#ifndef BACKEND_CUDA_SOURCE_INSTANCE_INT_H
#define BACKEND_CUDA_SOURCE_INSTANCE_INT_H

#include "daemon/backend/cuda/source/instance.h"
#include "daemon/backend/cuda/source/local.h"

#define PARAMETERS_MAX 12u /* of a template */
#define ARGUMENTS_MAX  32u /* of a function */

/* "template <class T, int N = 1>" of a function. */
struct head {
    const struct item *item;
    unsigned count, required; /* parameters, and those without a default */
    bool plain;               /* each is a named type or value, and there is no pack */
    struct parameter {
        const struct lex_token *name;
        struct item_range declared; /* without its default */
        struct item_range value;    /* its default */
        bool type;
    } parameter[PARAMETERS_MAX];
};

/* One function or declaration whose mentions are looked for; a template with arguments. */
struct scope {
    const struct item *item;
    struct head head;
    char *text[PARAMETERS_MAX]; /* owned; of each parameter */
    bool spelled;
};

struct finder {
    const struct items *items;
    const bool *gone;
    const struct lex_token *t; /* of the code */
    struct instances *out;
    struct scope *scope; /* owned */
    unsigned scope_count;
    struct locals locals; /* of the scope that is looked at */
    bool *probed;         /* owned, for each item */
    bool failed;          /* no memory */
};

/* A text that grows. */
struct words {
    struct capbuf text;
    bool unknown; /* it names what nobody can tell */
    bool spelled; /* every word is the source's */
    const struct lex_token *last;
};

/* How names are written. */
struct manner {
    bool constant; /* a template's argument: values are to be known */
    unsigned depth;
};

/* What commas separate; how many, `most` at most (more than fit are one more). */
unsigned head_arguments(const struct lex_token *t, struct item_range inside, struct item_range *out,
                        unsigned most);
/* false: it is no template of a function, or a specialization of one. */
bool head_read(const struct lex_token *t, const struct item *item, struct head *ret_head);
bool head_names_kernel(const struct items *s, const struct item *item);

struct words words_begin(void);
/* NULL: it says what nobody can tell. */
char *words_end(struct words *w);
void words_text(struct words *w, const char *text);
void words_token(struct words *w, const struct lex_token *t);
void words_range(struct finder *f, const struct scope *s, struct item_range r, struct manner manner,
                 struct words *w);
/* The namespaces around, each with its "::". */
void words_space(const struct finder *f, unsigned space, struct words *w);

/* The function's parameters that say something of its template's: as ranges without their defaults,
 * and which they are. */
unsigned probe_parameters(const struct finder *f, const struct head *h, unsigned *ret_index,
                          struct item_range *ret_declared);
/* "p7_1": the second parameter of the seventh item's template. */
void probe_tag(const struct finder *f, const struct head *h, unsigned parameter, struct words *w);
/* Has the text what tells the arguments of that template? Puts it there when first asked. */
bool probe_ready(struct finder *f, const struct head *h);

#endif

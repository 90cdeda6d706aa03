/*
 * Which instances of a source's kernel templates its host part asks for: "kernel<float, 4>" with or
 * without a launch behind it, also in templates of the host, for each call of those.
 *
 * Arguments that a call leaves to the compiler are left to it here, too: for a template "kernel"
 * the text gets a declaration beside it that takes the same parameters and tells what was deduced,
 * and the instance's name asks that, with the declared types of the arguments for their values.
 * What a name in an argument is, is told only where everything of that name in the function has one
 * type. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_INSTANCE_H
#define BACKEND_CUDA_SOURCE_INSTANCE_H

#include "daemon/backend/cuda/source/item.h"

#define INSTANCES_MAX          256u
#define INSTANCE_TEMPLATES_MAX 32u

/* Stands once before a text that has such declarations; INSTANCE_PROBES or INSTANCE_NO_PROBES too.
 */
#define INSTANCE_PRELUDE                                                                           \
    "template <class T> __device__ T &__gpud_value();\n"                                           \
    "template <class T> struct __gpud_plain { typedef T type; };\n"
#define INSTANCE_PROBES    "#define __gpud_probe(...) __VA_ARGS__\n"
#define INSTANCE_NO_PROBES "#define __gpud_probe(...)\n"

struct instance {
    char *expression; /* owned: what names it at the text's end */
    bool spelled;     /* as the source spells it; else only where there are probes */
};

/* What is to be put into the text. */
struct instance_probe {
    const char *at; /* in the source, before this character */
    char *text;     /* owned; one line */
};

struct instances {
    struct instance list[INSTANCES_MAX];
    unsigned count;
    struct instance_probe *probe; /* owned; in no order */
    unsigned probe_count;
    struct instance_template {
        char *name; /* owned: "space::kernel" */
        unsigned line;
        bool untold;                 /* some of them cannot be told, or are too many */
    } asked[INSTANCE_TEMPLATES_MAX]; /* of which there are to be some; no more are told of */
    unsigned asked_count;
};

/* `gone`: of each token of the code whether it is the host's and goes. false: no memory. */
bool instances_find(const struct items *items, const bool *gone, struct instances *ret_instances);
void instances_finish(struct instances *s);

#endif

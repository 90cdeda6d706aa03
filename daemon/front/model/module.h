/*
 * Modules and kernels as the front knows them. A module is source code, built-in or a user's.
 * gpud-compile makes a binary of it for each back end and architecture that needs it. Thread: the
 * loop's.
 */
#ifndef FRONT_MODEL_MODULE_H
#define FRONT_MODEL_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/hash.h"
#include "common/idmap.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/resources.h"
#include "kernels/signature.h"
#include "proto/compile.h"
#include "proto/messages.h"

struct buffer;
struct tenant;
struct session;
struct module;
struct variable;

/* A kernel that a launch names: a built-in operation or primitive, or one of a user's module. */
struct kernel {
    uint64_t handle;
    struct module *module; /* NULL: an operation (its plan names primitives) */
    char name[PROTO_NAME_MAX + 1];
    char entry[2 * PROTO_NAME_MAX + 1]; /* its name in code without a signature */
    const struct signature *signature;  /* NULL: code without one; else owned by module or static */
    struct proto_karg *args;            /* of code without a signature; owned by the module */
    unsigned arg_count;
    const char *unfit; /* why it cannot be launched, owned by `module`; NULL: it can */
    UT_hash_handle hh; /* in front->builtin_kernels */
};

enum build_state { BUILD_NONE, BUILD_RUNNING, BUILD_DONE, BUILD_FAILED };

/* The binary of a module for one (back end, architecture). */
struct build {
    struct module *module;
    char backend[16];
    char arch[128];
    enum build_state state;
    unsigned device; /* index of the device for which it was compiled last */
    int binary_fd;   /* memfd, owned; -1: none */
    uint64_t binary_size;
    struct hash hash;
    struct err error;
    uint64_t failed_ns;
    struct resource_list needs; /* of its entries, as far as compiler and workers reported them */
    struct build *next;
};

struct module {
    uint64_t id; /* handle; also names it to workers */
    char name[PROTO_NAME_MAX + 1];
    int lang;
    uint8_t *source;  /* owned; NULL: built-in, `text` is static */
    uint64_t charged; /* bytes in its tenant's message_bytes until the module ends */
    struct bytes text;
    char *options;             /* owned */
    char *signature_text;      /* owned */
    struct proto_list headers; /* HEADER records that the source may include, owned */
    char file[PROTO_LABEL_MAX + 1];
    struct tenant *tenant;                  /* NULL: built-in */
    struct session *owner;                  /* NULL: built-in, or its session ended */
    struct module *owned_prev, *owned_next; /* in owner->own_modules */
    struct hash hash;                       /* of content and options; part of a strike's key */
    struct op *pending; /* the unanswered MODULE_LOAD: it waits for the compiler, or (no build yet)
                           for a device or for room at the compiler; NULL: none */
    struct kernel *kernels; /* owned array */
    unsigned kernel_count;
    struct signature *signatures; /* owned array */
    char *names;                  /* owned: texts of kernels */
    struct proto_karg *args;      /* owned array: of all kernels, one after the other */
    struct build *builds;
    struct device_set loaded; /* on devices whose workers have it */
    struct device_set loading;
    struct variable *variables; /* those opened as buffers; uthash by name; not owned */
    unsigned users;             /* unfinished jobs, programs and variables that name it */
    uint32_t recorded;          /* number of the recording that has it; 0: none */
    bool unloaded;              /* unloaded, or its owner ended; destroyed with its last user */
};

/* A variable of a module that a session opened as a buffer (memory/variable.h). */
struct variable {
    struct module *module;         /* whose `users` count it */
    struct buffer *buffer;         /* its owner */
    int access;                    /* how kernels of the module access it */
    bool asked;                    /* the worker was asked for its address */
    char name[PROTO_NAME_MAX + 1]; /* key */
    UT_hash_handle hh;             /* in module->variables */
};

struct build *module_build(struct module *m, const char *backend, const char *arch); /* or NULL */
/* The oldest build that is done. NULL: none, or `m` is NULL (an operation). */
struct build *module_build_made(struct module *m);
/* Whether the build failed for good (ERR_COMPILE, ERR_UNSUPPORTED), or failed otherwise less than 1
 * s ago. Other failures, as of a compiler that ran into its limits, are tried again. */
bool build_failed(const struct build *b, uint64_t now_ns);
/* Finds or makes the build. NULL: no memory. */
struct build *module_build_obtain(struct module *m, const char *backend, const char *arch);
/* What a kernel of the build needs. For a family of types: what suffices for each member. */
struct resources kernel_needs(const struct kernel *k, const struct build *b);
/* Puts the argument in front of the text in `e`: "argument 2 (y): …". */
void kernel_name_arg(const struct kernel *k, unsigned index, struct err *e);
/* Makes the kernels of a user's module from the compiler's report. After a failure the module can
 * only be destroyed. */
int module_set_kernels(struct module *m, const struct compile_response *response, struct err *e);
/* Gives a new module to the session, which counts it. */
void module_own(struct module *m, struct session *s);
void module_disown(struct module *m); /* accepts a module without an owner */
void module_destroy(struct module *m);

/* ERR_QUARANTINED: the kernel ended too many workers of the tenant's. t NULL: the daemon's own job.
 */
int kernel_check(const struct tenant *t, const struct module *m, const char *entry, struct err *e);
/* Identifies a kernel for strikes: a hash of the module's content and the entry. */
struct hash kernel_hash(const struct module *m, const char *entry);

#endif

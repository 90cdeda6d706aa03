/*
 * Landlock: which files a process and its children may use from now on. What no rule names is
 * refused. TCP, abstract sockets and signals to processes outside are refused where the kernel can.
 * Other processes cannot be traced or looked into. Landlock confines the calling thread and what it
 * starts, so a process calls this before it has other threads. Blocks on files. Thread: one.
 */
#ifndef CONFINE_LANDLOCK_H
#define CONFINE_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* Rights to a file, or to a folder with all below it; may be combined. */
enum landlock_right {
    LANDLOCK_READ = 1,   /* to read files and lists of folders */
    LANDLOCK_RUN = 2,    /* to start programs */
    LANDLOCK_DEVICE = 4, /* to read, write and control devices */
    LANDLOCK_ALL = 8,    /* everything */
    LANDLOCK_REMOVE = 16 /* to remove empty folders */
};

struct landlock {
    int fd;      /* the rules so far; -1: none are possible */
    uint64_t fs; /* the rights that this kernel knows */
    int abi;     /* version of the kernel's Landlock; 0: none, or a filter forbids it */
    struct err *e;
};

/* Begins a set of rules. abi 0 is no error; the calls below then do nothing. e: for the errors of
 * all calls, ERR_INTERNAL. */
int landlock_begin(struct landlock *l, struct err *e);
/* A path that does not exist needs no rule. */
int landlock_allow(const struct landlock *l, const char *path, unsigned rights);
/* The absolute paths of a list whose parts end at one of `ends`; NULL: an empty list. inside: for
 * a file its folder, because a library's other files lie beside it. */
int landlock_allow_list(const struct landlock *l, const char *list, const char *ends, bool inside,
                        unsigned rights);
/* What drivers and compilers need: libraries and programs of the system and the toolkits that the
 * environment and `options` ("key=/path,key=/path") name, with `rights`, and devices of GPUs. */
int landlock_allow_system(const struct landlock *l, const char *options, unsigned rights);
/* The rules hold from here on. The set is over, also after an error. */
int landlock_enforce(struct landlock *l);
/* Gives the set up; for errors in between. */
void landlock_finish(struct landlock *l);

#endif

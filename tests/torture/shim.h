/*
 * libtorture.so: a library for LD_PRELOAD whose functions of the C library count their calls, and
 * fail where the page has ordered it (page.h). Only calls from the project's own code count: what
 * libuv, NNG, OpenCL's drivers and the C library call for themselves is theirs to test.
 *
 * Without a page every function is as if it were not there. Thread: any. Nothing here blocks or
 * allocates, except for the trace of a failure.
 */
#ifndef TORTURE_SHIM_H
#define TORTURE_SHIM_H

#include <dlfcn.h>
#include <stddef.h>

#include "tests/torture/page.h"

/* A function that stands in for one of the C library. */
#define SHIM __attribute__((visibility("default")))

/* Counts a call that returns to `caller` (NULL: always). True: it is the one that fails, and errno
 * is set. */
bool shim_fails(enum kind kind, const char *call, const void *caller);
/* The kind of calls that only fail on files of a file system. */
bool shim_fails_on_file(enum kind kind, const char *call, int fd, const void *caller);
/* An interruption by a signal, which only calls have that wait; `flags`: of recv and send, else 0.
 */
bool shim_interrupts(const char *call, int fd, int flags, const void *caller);
void *shim_next(const char *name); /* the function that the shim stands before */
/* A block of memory was taken by `caller`, or given back. */
void shim_heap_take(void *block, const void *caller);
void shim_heap_give(void *block);
const char *shim_path(void); /* of libtorture.so; "" without a page */

#define FAILS(kind, call)       shim_fails((kind), (call), __builtin_return_address(0))
#define FAILS_ON(kind, call, f) shim_fails_on_file((kind), (call), (f), __builtin_return_address(0))

/* A function that returns -1, or another value, where it fails. */
#define STAND_IN(type, name, kind, failed, params, args)                                           \
    SHIM type name params                                                                          \
    {                                                                                              \
        static type(*next) params;                                                                 \
        if (FAILS(kind, #name)) {                                                                  \
            return (failed);                                                                       \
        }                                                                                          \
        if (next == NULL) {                                                                        \
            *(void **)&next = shim_next(#name);                                                    \
        }                                                                                          \
        return next args;                                                                          \
    }

#endif

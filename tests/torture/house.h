/*
 * The daemon under torture: its start and end, what its processes hold, and the page that orders
 * failures. Unlike tests/system/harness it reports what goes wrong instead of failing the test.
 *
 * Thread: one.
 */
#ifndef TORTURE_HOUSE_H
#define TORTURE_HOUSE_H

#include "tests/system/harness/harness.h"
#include "tests/torture/page.h"

struct house {
    struct torture_page *page; /* shared with all processes */
    struct daemon d;
    const char *device; /* "sim", "opencl", "cuda" */
    char config[DAEMON_PATH + 16];
    char cache[256];                /* of compiled kernels, which outlives the house */
    char scratch[DAEMON_PATH + 16]; /* TMPDIR, as well */
};

/* What a process holds: nothing of it may grow with each failure. */
struct holding {
    int64_t blocks; /* of its heap */
    int64_t descriptors;
    int64_t shared; /* mappings of shared memory */
};

/* Whether its devices run any kernel from source. */
bool house_compiles(const struct house *h);
void house_prepare(struct house *h); /* directory and settings of the next daemon */
/* Starts gpud and waits until it is ready: 0, its exit status (128 + a signal), or -1 if it is not
 * ready within the nanoseconds. */
int house_start(struct house *h, uint64_t patience);
int house_await(struct house *h, uint64_t patience); /* the same for a gpud that was spawned */
/* SIGTERM. Its exit status, or -1 if it or another of its processes does not end in time; these are
 * killed then. */
int house_stop(struct house *h);
void house_abandon(struct house *h); /* SIGKILL for all of them */
bool house_lives(struct house *h);   /* false: gpud ended, `end` tells */
int house_wait(struct house *h);     /* as house_start, for a gpud that ends by itself */
pid_t house_process(const struct house *h, enum role role); /* that lives; 0: none */
struct holding house_holding(const struct house *h, enum role role);
/* In the runtime folder, the cache and TMPDIR, without compiled kernels. */
int64_t house_files(const struct house *h);
void house_forget_ended(struct house *h); /* places in the page of processes that ended */

/* The n-th call from now on fails, and `count` of them. */
void house_arm(struct house *h, enum role role, enum kind kind, uint64_t n, uint64_t count);
void house_disarm(struct house *h);

#endif

/*
 * Another client in a process of its own, forked before there are threads, with a pipe each way.
 * Thread: one. Ends the process if anything fails.
 */
#ifndef BENCH_PARTNER_H
#define BENCH_PARTNER_H

#include <sys/types.h>

struct partner {
    pid_t pid;
    int to, from; /* owned */
};

/* Runs in the new process, which ends with this one. Does not return. */
typedef void (*partner_fn)(const void *data, int in, int out);

void partner_start(struct partner *p, partner_fn work, const void *data);
/* Blocks until the partner has written `size` bytes. */
void partner_read(const struct partner *p, void *out, size_t size);
/* Sends one byte, whose meaning the partner defines. */
void partner_signal(const struct partner *p);
/* Closes the pipes and waits for the partner's end, which must be a success. */
void partner_end(struct partner *p);
/* Ends a partner that does not end by itself. */
void partner_kill(struct partner *p);

#endif

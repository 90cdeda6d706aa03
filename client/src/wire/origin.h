/*
 * The process that made an object. Detects a child of fork, where the object must not be used.
 * Needs no system call if the kernel can zero a page at a fork (MADV_WIPEONFORK, Linux 4.14);
 * otherwise compares process ids. Thread: any.
 */
#ifndef CLIENT_WIRE_ORIGIN_H
#define CLIENT_WIRE_ORIGIN_H

#include <stdbool.h>
#include <sys/types.h>

struct origin {
    pid_t pid;           /* of the process that made the object */
    unsigned char *mark; /* owned: a page that is zero in children; NULL: the pid decides */
};

/* Cannot fail: without the page, origin_here is slower. */
void origin_init(struct origin *o);
void origin_finish(struct origin *o);     /* all zeros is accepted */
bool origin_here(const struct origin *o); /* is the caller in that process? */

#endif

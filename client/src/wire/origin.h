/*
 * Which process something is of: tells it from a child of fork, where it must not be used. Without
 * a system call where the kernel can empty a page at a fork (Linux 4.14), by the process's number
 * elsewhere. Thread: any.
 */
#ifndef CLIENT_WIRE_ORIGIN_H
#define CLIENT_WIRE_ORIGIN_H

#include <stdbool.h>
#include <sys/types.h>

struct origin {
    pid_t pid;           /* of the process that made it */
    unsigned char *mark; /* owned: a page that is empty in children; NULL: there is none */
};

/* Cannot fail: without a page it is slower. */
void origin_init(struct origin *o);
void origin_finish(struct origin *o); /* all zeros is accepted */
bool origin_here(const struct origin *o);

#endif

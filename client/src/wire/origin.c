#include "client/src/wire/origin.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARK_BYTES 1u /* the kernel rounds it up to a page */

void origin_init(struct origin *o)
{
    *o = (struct origin){.pid = getpid()};
    unsigned char *mark =
        mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) {
        return;
    }
    if (madvise(mark, MARK_BYTES, MADV_WIPEONFORK) != 0) {
        (void)munmap(mark, MARK_BYTES);
        return;
    }
    *mark = 1;
    o->mark = mark;
}

void origin_finish(struct origin *o)
{
    if (o->mark != NULL) {
        (void)munmap(o->mark, MARK_BYTES);
        o->mark = NULL;
    }
}

bool origin_here(const struct origin *o)
{
    /* written before the object was handed out, then only by a fork */
    return o->mark != NULL ? *(volatile unsigned char *)o->mark != 0 : o->pid == getpid();
}

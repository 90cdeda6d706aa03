/*
 * Copies on the host that outlive the front, of buffers whose domain has no worker. The launcher
 * keeps a descriptor of each. The entry of the buffer in the adoption record, which the launcher
 * keeps as well, says so, and whose the buffer is.
 *
 * The entry decides: a copy without an entry that names it is released. As the record is shared
 * memory, the entry of a buffer that jobs may write again is without its copy at once, although the
 * launcher hears of it later.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_WORKERS_KEEP_H
#define FRONT_WORKERS_KEEP_H

#include "daemon/front/model/front.h"

/* How many more copies the launcher takes. */
uint64_t keep_room(const struct front *f);
/* The launcher gets the buffer's copy, if it has none yet. What fails is logged: the buffer is lost
 * with this front then. */
void keep_copy(struct front *f, struct buffer *b);
/* The buffer needs its copy no more, or it is not true any more. The launcher has none: nothing
 * happens. */
void keep_release(struct front *f, struct buffer *b);
/* The launcher has ended, and all copies and records that it kept with it. */
void keep_orphaned(struct front *f);

/* ---- adoption ---------------------------------------------------------------------------- */

/* The launcher hands on a copy that it got from a former front. Takes the descriptor. */
void keep_found(struct front *f, uint64_t id, int fd);
/* Takes the copy of this buffer, which the launcher still keeps. Returns its descriptor, which the
 * caller owns; -1: there is none. */
int keep_claim(struct front *f, uint64_t id);
/* The same, and the buffer owns what it gets. */
bool keep_claim_for(struct front *f, struct buffer *b);
/* The launcher has listed all, and the adoption is over: releases what nothing has claimed. */
void keep_settle(struct front *f);
/* The front ends: the launcher keeps all that it has. */
void keep_finish(struct front *f);

#endif

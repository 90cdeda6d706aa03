#include "daemon/front/workers/keep.h"

#include <stdlib.h>
#include <unistd.h>
#include <uthash.h>

#include "common/descriptors.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/workers/command.h"

/* A copy that no buffer has claimed yet. */
struct kept {
    uint64_t id; /* key */
    int fd;      /* owned */
    UT_hash_handle hh;
};

uint64_t keep_room(const struct front *f)
{
    uint64_t unclaimed = HASH_COUNT(f->kept);
    return sat_sub(f->copies_max, f->copies_kept + f->copies_coming + unclaimed);
}

/* The one way to change b->handed. The record follows. */
static void handed_is(struct front *f, struct buffer *b, bool handed)
{
    b->handed = handed;
    f->copies_kept += handed ? 1 : -UINT64_C(1);
    if (b->record != 0) {
        command_buffer_note(f, b);
    }
}

int keep_claim(struct front *f, uint64_t id)
{
    struct kept *k = NULL;
    int fd = -1;
    HASH_FIND(hh, f->kept, &id, sizeof id, k);
    if (k != NULL) {
        HASH_DEL(f->kept, k);
        fd = k->fd;
        free(k);
    }
    return fd;
}

static int hand(struct front *f, const struct buffer *b, struct err *e)
{
    const struct device *d = f->device[b->device];
    if (d->record_alone) { /* the next front would not find the entry */
        return err_set(e, ERR_WORKER_LOST, "its worker's launcher has ended");
    }
    return keep_room(f) > 0 ? f->io.keep(f->launcher, b->handle, d->recorded, b->host_fd, e)
                            : err_set(e, ERR_LIMIT, "the launcher keeps no more copies");
}

void keep_copy(struct front *f, struct buffer *b)
{
    const struct device *d = f->device[b->device];
    struct err e = ERR_INIT;
    if (b->handed || b->record == 0) { /* without an entry the next front finds no buffer for it */
        return;
    }
    int former = keep_claim(f, b->handle); /* another content: this one replaces it */
    descriptor_close(&former);
    if (hand(f, b, &e) == 0) {
        handed_is(f, b, true);
    } else {
        log_about(LOG_JOB_UNRECORDED, about_device(d),
                  "device %u: buffer %#llx will not survive a restart of gpud: %s", device_shown(d),
                  (unsigned long long)b->handle, e.text);
    }
}

static void release(struct front *f, uint64_t id)
{
    struct err e = ERR_INIT;
    if (f->io.release(f->launcher, id, &e) != 0 && e.code != ERR_CLOSED) {
        log_say(LOG_JOB_UNRECORDED, "buffer %#llx: its copy stays with the launcher: %s",
                (unsigned long long)id, e.text);
    }
}

void keep_release(struct front *f, struct buffer *b)
{
    if (b->handed) {
        handed_is(f, b, false);
        release(f, b->handle);
    }
}

void keep_orphaned(struct front *f)
{
    uint32_t cursor = 0;
    for (struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL;) {
        if (b->handed) {
            handed_is(f, b, false);
        }
    }
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        d->record_alone = true;
    }
}

/* ---- adoption -------------------------------------------------------------------------------- */

void keep_found(struct front *f, uint64_t id, int fd)
{
    struct kept *k = malloc(sizeof *k);
    if (k != NULL) {
        *k = (struct kept){.id = id, .fd = fd};
        HASH_ADD(hh, f->kept, id, sizeof k->id, k);
    }
    if (k == NULL || !HASH_ENTERED(k->hh)) {
        log_say(LOG_BUFFER_LOST, "buffer %#llx is lost: no memory to take its copy over",
                (unsigned long long)id);
        free(k);
        (void)close(fd);
        release(f, id);
    }
}

bool keep_claim_for(struct front *f, struct buffer *b)
{
    int fd = keep_claim(f, b->handle);
    if (fd < 0) {
        return false;
    }
    if (b->host_fd < 0) {
        b->host_fd = fd;
    } else { /* the worker has sent the same memory */
        (void)close(fd);
    }
    b->handed = true;
    f->copies_kept++;
    return true;
}

void keep_settle(struct front *f)
{
    struct kept *k;
    struct kept *next;
    HASH_ITER(hh, f->kept, k, next)
    {
        release(f, k->id);
    }
    keep_finish(f);
}

void keep_finish(struct front *f)
{
    struct kept *k;
    struct kept *next;
    HASH_ITER(hh, f->kept, k, next)
    {
        HASH_DEL(f->kept, k);
        (void)close(k->fd);
        free(k);
    }
}

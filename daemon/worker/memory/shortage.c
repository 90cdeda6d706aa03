#include "daemon/worker/memory/shortage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/saturate.h"

struct numbers {
    struct pool_stats stats;
    struct pool_account account;
    uint64_t kept;          /* bytes that others use or have reserved, in the pool or outside it */
    uint64_t spilled_limit; /* its limit on the host, in bytes */
};

static void gather(const struct memory *m, uint64_t key, struct numbers *ret_numbers)
{
    const struct memory_tenant *t = NULL;
    HASH_FIND(hh, m->tenants, &key, sizeof key, t);
    unsigned number = t != NULL ? t->number : POOL_TENANTS;
    pool_stats(m->pool, &ret_numbers->stats);
    pool_account(m->pool, number, &ret_numbers->account);
    ret_numbers->kept = pool_kept(m->pool, number);
    ret_numbers->spilled_limit = t != NULL ? t->spilled_limit : UINT64_MAX;
    if (t == NULL) {
        ret_numbers->account.quota = POOL_QUOTA_NONE;
    }
}

/* The limit of this process's address space, if `wanted` more bytes would exceed it; else 0. */
static uint64_t space_limit(uint64_t wanted)
{
    struct rlimit limit;
    char text[64] = "";
    FILE *f = fopen("/proc/self/statm", "re"); /* first number: pages mapped */
    bool known = f != NULL && fgets(text, sizeof text, f) != NULL &&
                 getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (f != NULL) {
        (void)fclose(f);
    }
    uint64_t mapped = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    return known && sat_add(mapped, wanted) > limit.rlim_cur ? limit.rlim_cur : 0;
}

/* For a request that the pool's numbers allow, but that the device or the system refuses. */
static void advise_unobtained(uint64_t wanted, char *out, size_t size)
{
    uint64_t space = space_limit(wanted);
    if (space > 0) {
        (void)snprintf(out, size,
                       "the worker may map %" PRIu64
                       " bytes in all: raise that limit (ulimit -v, LimitAS= of gpud-launcher), or "
                       "set device_memory_max below it",
                       space);
    } else {
        (void)snprintf(
            out, size,
            "free buffers: the memory that could be freed is in pieces too small for it");
    }
}

/* For a request that neither the host nor the end of jobs helps. */
static void advise_room(const struct shortage *s, char *out, size_t size)
{
    if (s->movable > 0 && s->host_limit == 0) {
        (void)snprintf(out, size, "free buffers, or let buffers move to the host (spill_limit)");
    } else if (s->movable > 0) {
        (void)snprintf(out, size,
                       "free buffers, or raise spill_limit: the host has room for %" PRIu64
                       " of its %" PRIu64 " bytes",
                       sat_sub(s->host_limit, s->host_bytes), s->host_limit);
    } else {
        (void)snprintf(out, size, "let jobs that run end, free buffers, or split the job");
    }
}

/* Names the one thing that helps. The first cause that nothing else can change wins. */
static void advise(const struct shortage *s, const struct numbers *n, char *out, size_t size)
{
    uint64_t most = sat_sub(n->stats.limit, n->kept);
    bool counted_on = s->obtainable >= s->wanted || n->stats.largest_free >= s->wanted;
    if (s->own && s->wanted > n->account.quota.hard) {
        (void)snprintf(out, size, "ask for less at once, or raise its memory_hard of %" PRIu64,
                       n->account.quota.hard);
    } else if (s->kept > 0 && s->wanted <= most) {
        (void)snprintf(out, size,
                       "free buffers, or raise its memory_spilled of %" PRIu64 ": %" PRIu64
                       " bytes of its own could go then",
                       n->spilled_limit, s->kept);
    } else if (s->own) {
        (void)snprintf(out, size,
                       "it is charged %" PRIu64 " of its memory_hard of %" PRIu64
                       ": let its jobs end, free some of its buffers, or raise the limit",
                       sat_add(n->account.mapped, n->account.reserved), n->account.quota.hard);
    } else if (s->wanted > most && n->kept > 0) {
        (void)snprintf(out, size,
                       "ask for less at once: of %" PRIu64 " bytes %" PRIu64
                       " are kept for other tenants, exported or managed",
                       n->stats.limit, n->kept);
    } else if (s->wanted > most) {
        (void)snprintf(out, size, "ask for less at once: the device has %" PRIu64, n->stats.limit);
    } else if (s->obtainable >= s->wanted && s->leaving + n->stats.pending > 0) {
        (void)snprintf(out, size, "submit it again: buffers that move to the host make room");
    } else if (counted_on) {
        advise_unobtained(s->wanted, out, size);
    } else {
        advise_room(s, out, size);
    }
}

int shortage_say(const struct memory *m, const struct shortage *s, struct err *e)
{
    char advice[256];
    char name[32];
    struct numbers n;
    gather(m, s->tenant, &n);
    bool soon = memory_soon(m, s->tenant, s->wanted);
    if (soon && s->behind && !memory_may_promise(m, s->tenant, s->wanted, false)) {
        (void)snprintf(advice, sizeof advice,
                       "try again later, or free buffers: %" PRIu64
                       " bytes come free when what runs has ended, and %" PRIu64
                       " are promised to buffers made before",
                       m->leaving, m->promised);
    } else if (soon) {
        (void)snprintf(advice, sizeof advice,
                       "try again when what runs has ended: %" PRIu64 " bytes are free then",
                       m->leaving);
    } else {
        advise(s, &n, advice, sizeof advice);
    }
    return err_set(e, s->own ? ERR_LIMIT : ERR_DEVICE_MEMORY,
                   "tenant %s wants %" PRIu64 " bytes more of the device; largest free %" PRIu64
                   ", %" PRIu64 " wait for what runs, %" PRIu64 " could move to the host; %s",
                   memory_tenant_name(m, s->tenant, name), s->wanted, n.stats.largest_free,
                   n.stats.pending, s->movable, advice);
}

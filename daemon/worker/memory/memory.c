#include "daemon/worker/memory/memory.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/saturate.h"
#include "daemon/pool/clean.h"
#include "daemon/pool/move.h"
#include "daemon/pool/pressure.h"
#include "daemon/worker/memory/mapping_pages.h"
#include "proto/frames.h"

#define CHUNK_BYTES (2u << 20) /* bytes of a block that smaller requests share */
#define SETTLE_NS   (2 * NS_PER_S)
/* The number that all tenants share when the other numbers are given out. */
#define TENANT_REST     (POOL_TENANTS - 1)
#define NUMBERS_AT_ONCE 16u /* numbers collected at once; each costs a walk over the pages */
#define NUMBERS_NS      NS_PER_S

/* ---- releases to the driver ------------------------------------------------------------------ */

/* Memory that is queued for release to the driver. */
struct leaving {
    struct release release;
    struct memory *m;
    struct backend_block *block;
    uint64_t bytes;
    enum memory_kind kind;         /* POOL: a block of the pool */
    unsigned tenant;               /* number of the tenant that is charged for it */
    struct memory_tenant *account; /* account charged for it; NULL: none */
};

/* Ends a charge that the pool counts as a reservation. */
static void uncharge(struct memory *m, unsigned number, struct memory_tenant *t, uint64_t bytes)
{
    pool_unreserve(m->pool, number, bytes);
    if (t != NULL) { /* the front's own work has no account, and shares a tenant's number */
        t->shared -= bytes;
    }
}

static void leaving_count(const struct leaving *x, bool comes)
{
    struct memory *m = x->m;
    uint64_t bytes = comes ? x->bytes : 0 - x->bytes;
    m->leaving += bytes;
    m->managed_leaving += x->kind == MEMORY_MANAGED ? bytes : 0;
    m->shared_leaving += x->kind == MEMORY_SHARED ? bytes : 0;
    if (x->account != NULL) {
        x->account->leaving += bytes;
    }
}

static void block_go(const struct leaving *x)
{
    struct memory *m = x->m;
    if (x->kind == MEMORY_SHARED) {
        m->b->memory->free_shared(m->d, x->block);
    } else {
        m->b->memory->free(m->d, x->block);
    }
    leaving_count(x, false);
    m->changes++;
    if (x->kind == MEMORY_POOL) {
        m->in_use -= x->bytes;
        return;
    }
    uncharge(m, x->tenant, x->account, x->bytes);
    m->managed -= x->kind == MEMORY_MANAGED ? x->bytes : 0;
    m->exported -= x->kind == MEMORY_SHARED ? x->bytes : 0;
}

static void leave(void *item)
{
    block_go(item);
    free(item);
}

/* Queues a release. Without memory for the entry the block is released at once. */
static void give_back(const struct leaving *x)
{
    struct leaving *later = x->m->releases != NULL ? malloc(sizeof *later) : NULL;
    leaving_count(x, true);
    if (later == NULL) {
        block_go(x);
        return;
    }
    *later = *x;
    release_put(x->m->releases, &later->release, 0, leave, later);
}

/* Tries to release queued memory after a refused request. True: some was released, so a retry
 * may succeed. */
static bool given_back(struct memory *m, int rc)
{
    uint64_t before = m->leaving;
    if ((rc == ERR_DEVICE_MEMORY || rc == ERR_LIMIT) && before > 0) {
        releases_turn(m->releases);
    }
    return m->leaving < before;
}

static struct memory_tenant *tenant_find(const struct memory *m, uint64_t key)
{
    struct memory_tenant *t = NULL;
    HASH_FIND(hh, m->tenants, &key, sizeof key, t);
    return t;
}

uint64_t memory_leaving(const struct memory *m, const uint64_t *tenant)
{
    const struct memory_tenant *t = tenant != NULL ? tenant_find(m, *tenant) : NULL;
    return tenant == NULL ? m->leaving : t != NULL ? t->leaving : 0;
}

bool memory_leaves_late(const struct memory *m)
{
    return m->leaving > 0 && m->releases != NULL && !releases_soon(m->releases);
}

static uint64_t rounded(uint64_t size, uint64_t to)
{
    return sat_add(size, to - 1) / to * to;
}

/* Memory that another tenant releases is kept for that tenant again, up to its guarantee. */
uint64_t memory_leaving_for(const struct memory *m, unsigned number)
{
    uint64_t bytes = m->managed_leaving + m->shared_leaving;
    for (const struct memory_tenant *t = m->tenants; t != NULL; t = t->hh.next) {
        struct pool_account a;
        pool_account(m->pool, t->number, &a);
        uint64_t after = sat_sub(sat_add(a.mapped, a.reserved), t->leaving);
        uint64_t kept = sat_sub(a.quota.guaranteed, after);
        bytes -= t->number == number ? 0 : kept < t->leaving ? kept : t->leaving;
    }
    return bytes;
}

/* Would the request fit beside these reservations once the queued memory is released? */
static bool soon(const struct memory *m, const struct memory_tenant *t, uint64_t key, uint64_t size,
                 uint64_t own_promised, uint64_t promised)
{
    struct pool_account a;
    struct pool_stats s;
    unsigned number = t != NULL ? t->number : key == 0 ? 0 : TENANT_REST;
    pool_account(m->pool, number, &a);
    pool_stats(m->pool, &s);
    uint64_t taken =
        sat_sub(sat_add(s.used, pool_kept(m->pool, number)), memory_leaving_for(m, number));
    uint64_t own = sat_sub(sat_add(a.meter.used, a.reserved), t != NULL ? t->leaving : 0);
    return m->leaving > 0 && size <= sat_sub(s.limit, sat_add(taken, promised)) &&
           size <= sat_sub(a.quota.hard, sat_add(own, own_promised));
}

bool memory_soon(const struct memory *m, uint64_t tenant, uint64_t size)
{
    return soon(m, tenant_find(m, tenant), tenant, size, 0, 0);
}

bool memory_may_promise(const struct memory *m, uint64_t tenant, uint64_t size, bool managed)
{
    const struct memory_tenant *t = tenant_find(m, tenant);
    uint64_t bytes = rounded(size, POOL_ALIGN);
    uint64_t stays = sat_add(m->managed - m->managed_leaving, m->managed_promised);
    return (!managed || bytes <= sat_sub(m->managed_limit, stays)) &&
           soon(m, t, tenant, bytes, t != NULL ? t->promised : 0, m->promised);
}

static void promise_count(struct memory *m, struct memory_tenant *t, uint64_t bytes, bool managed)
{
    m->promised += bytes;
    m->managed_promised += managed ? bytes : 0;
    if (t != NULL) {
        t->promised += bytes;
    }
}

struct memory_tenant *memory_promise(struct memory *m, uint64_t tenant, uint64_t size, bool managed)
{
    struct memory_tenant *t = tenant_find(m, tenant);
    promise_count(m, t, rounded(size, POOL_ALIGN), managed);
    return t;
}

void memory_unpromise(struct memory *m, struct memory_tenant *t, uint64_t size, bool managed)
{
    promise_count(m, t, 0 - rounded(size, POOL_ALIGN), managed);
    m->changes++;
}

/* ---- the pool's source -----------------------------------------------------------------------*/

/* The driver still has the memory that is queued for release: more could exceed the limit. */
static int block_alloc(void *user, uint64_t size, void **ret_block, struct err *e)
{
    struct memory *m = user;
    struct backend_block *block = NULL;
    if (m->leaving > 0 && sat_add(m->in_use, size) > m->limit) {
        return err_set(e, ERR_DEVICE_MEMORY,
                       "%" PRIu64 " bytes go back to the device when what runs has ended",
                       m->leaving);
    }
    int rc = m->b->memory->alloc(m->d, size, &block, e);
    if (rc == 0) {
        m->in_use += size;
        *ret_block = block;
    }
    return rc;
}

/* The pool checks what the driver has free, because other processes may use the device as well. */
static int device_room(void *user, uint64_t *ret_free, struct err *e)
{
    struct memory *m = user;
    return m->b->memory->room(m->d, ret_free, e);
}

static void block_free(void *user, void *block, uint64_t size)
{
    give_back(&(struct leaving){.m = user, .block = block, .bytes = size});
}

static int clear_new(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    return mapping_clear(&((struct memory *)user)->mapping, range, at, bytes, e);
}

_Static_assert(offsetof(struct memory, mapping) == 0,
               "functions of the source get either as `user`");

static uint64_t calls_issued(void *user)
{
    return mapper_issued(((struct memory *)user)->mapping.mapper);
}

/* Zeros queue behind any kernel that fills the device, on every stream, so waiting for them could
 * take as long as the kernel. */
static bool quiet(void *data)
{
    const struct memory *m = data;
    bool idle = m->unmarked == 0;
    for (unsigned i = 0; idle && i < m->streams; i++) {
        idle = m->timeline.stream[i].first == NULL;
    }
    return idle;
}

/* ---- zeroing ---------------------------------------------------------------------------------*/

/* Zeros are enqueued in pieces of this many bytes, so that the device runs other work in
 * between. */
#define CLEAR_PIECE (UINT64_C(16) << 20)

int memory_clear(struct memory *m, const struct memory_piece *piece, uint64_t from, unsigned stream,
                 struct err *e)
{
    static const uint8_t ZEROS[16];
    uint64_t size = piece->dirty ? piece->pool.size : 0;
    int rc = 0;
    for (uint64_t at = from - from % sizeof ZEROS; rc == 0 && at < size; at += CLEAR_PIECE) {
        const struct backend_ref ref = {.block = piece->ref.block,
                                        .offset = piece->ref.offset + at};
        uint64_t bytes = size - at < CLEAR_PIECE ? size - at : CLEAR_PIECE;
        rc = m->b->stream->fill(m->stream[stream], ref, ZEROS, sizeof ZEROS, bytes, e);
    }
    return rc;
}

int memory_hung(const struct memory *m, struct err *e)
{
    return m->hung || m->mapping.hung
               ? err_set(e, ERR_DEVICE_LOST, "zeroing or moving memory did not end")
               : 0;
}

/* ---- streams and tenants ---------------------------------------------------------------------*/

unsigned memory_service(const struct memory *m)
{
    return m->streams - 1;
}

unsigned memory_copies(const struct memory *m)
{
    return m->streams - 2;
}

void memory_mark(struct memory *m, unsigned stream, struct backend_marker *marker,
                 struct timeline_point *point)
{
    timeline_add(&m->timeline, stream, marker, point);
}

void memory_passed(struct memory *m, struct timeline_point *point)
{
    uint64_t done = timeline_pass(&m->timeline, point);
    m->changes++;
    if (done != 0) {
        pool_advance(m->pool, point->stream, done);
    }
}

static int stream_wait(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    struct memory *m = user;
    struct backend_marker *marker = timeline_marker(&m->timeline, on, seq);
    m->waited = m->waited || marker != NULL;
    return marker == NULL ? 0 : m->b->stream->wait(m->stream[stream], marker, e);
}

static int stream_reached(void *user, unsigned stream, uint64_t *ret_seq, struct err *e)
{
    struct memory *m = user;
    (void)e;
    *ret_seq = timeline_ask(&m->timeline, stream, m->b->marker);
    return 0;
}

/* Has the tenant neither memory nor limits, and does the front's last report say so? */
static bool tenant_unused(const struct memory *m, const struct memory_tenant *t)
{
    struct pool_account a;
    pool_account(m->pool, t->number, &a);
    bool free_of_limits = a.quota.hard == UINT64_MAX && a.quota.soft == UINT64_MAX &&
                          a.quota.guaranteed == 0 && t->spilled_limit == UINT64_MAX;
    uint64_t has = a.mapped | a.reserved | a.staying | a.meter.used | t->shared | t->promised |
                   t->assured | t->spilled;
    return free_of_limits && has == 0 &&
           (t->reported.asked | t->reported.mapped | t->reported.shared | t->reported.spilled) == 0;
}

/* Collects numbers of tenants without memory, some at a time. Pages remember the number of their
 * last owner: a number is given to another tenant only after the pool has forgotten the former
 * one. */
static void numbers_return(struct memory *m)
{
    struct memory_tenant *t;
    struct memory_tenant *next;
    /* Empty slabs are still charged to their tenant. */
    (void)pool_trim(m->pool, UINT64_MAX);
    HASH_ITER(hh, m->tenants, t, next)
    {
        if (m->free_numbers == NUMBERS_AT_ONCE) {
            return;
        }
        if (tenant_unused(m, t)) {
            pool_renumber(m->pool, t->number);
            m->numbered[t->number] = NULL;
            m->free_numbers++;
            HASH_DEL(m->tenants, t);
            free(t);
        }
    }
}

/* patience: ns that must have passed since the last collection of numbers; UINT64_MAX: no
 * collection. */
static unsigned number_new(struct memory *m, uint64_t patience)
{
    if (m->numbers < TENANT_REST) {
        return m->numbers++;
    }
    if (m->free_numbers == 0 && patience != UINT64_MAX) {
        uint64_t now = clock_now_ns();
        if (now - m->returned_ns < patience) {
            return TENANT_REST;
        }
        m->returned_ns = now;
        numbers_return(m);
    }
    if (m->free_numbers == 0) {
        return TENANT_REST;
    }
    unsigned number = 0;
    while (m->numbered[number] != NULL) {
        number++;
    }
    m->free_numbers--;
    return number;
}

/* The front's own jobs show their bytes to no tenant and leave no secrets, so they share a
 * number with the first tenant. patience: as for number_new. NULL: no number is left. */
static struct memory_tenant *tenant_obtain(struct memory *m, uint64_t key, uint64_t patience)
{
    struct memory_tenant *t = tenant_find(m, key);
    if (t != NULL) {
        return t;
    }
    unsigned number = number_new(m, patience);
    t = number < TENANT_REST ? calloc(1, sizeof *t) : NULL;
    if (t != NULL) {
        *t = (struct memory_tenant){
            .key = key, .number = number, .spilled_limit = UINT64_MAX, .spilled_most = UINT64_MAX};
        HASH_ADD(hh, m->tenants, key, sizeof t->key, t);
    }
    if (t != NULL && HASH_ENTERED(t->hh)) {
        m->numbered[number] = t;
        return t;
    }
    free(t);
    m->free_numbers += number < TENANT_REST ? 1 : 0;
    return NULL;
}

static unsigned number_of(struct memory *m, uint64_t key, uint64_t patience)
{
    const struct memory_tenant *t = key != 0 ? tenant_obtain(m, key, patience) : NULL;
    return t != NULL ? t->number : key == 0 ? 0 : TENANT_REST;
}

unsigned memory_number(struct memory *m, uint64_t key)
{
    return number_of(m, key, UINT64_MAX);
}

static bool unlimited(const struct memory_limits *l)
{
    return l->device.hard == UINT64_MAX && l->device.soft == UINT64_MAX &&
           l->device.guaranteed == 0 && l->spilled == UINT64_MAX;
}

int memory_quota(struct memory *m, uint64_t key, const char *name,
                 const struct memory_limits *limits, struct err *e)
{
    const struct pool_quota *quota = &limits->device;
    struct memory_tenant *t = tenant_find(m, key);
    struct pool_account was;
    if (t == NULL && unlimited(limits)) {
        return 0; /* the tenant never had limits */
    }
    if (t == NULL && key != 0) {
        t = tenant_obtain(m, key, 0);
    }
    if (t == NULL) {
        return err_set(e, ERR_LIMIT, "tenant %s is one too many: a worker has at most %u", name,
                       TENANT_REST);
    }
    t->spilled_limit = limits->spilled;
    t->spilled_most = t->spilled > limits->spilled ? t->spilled : limits->spilled;
    m->changes++;
    pool_account(m->pool, t->number, &was);
    struct pool_quota rest = *quota;
    rest.guaranteed = 0;
    int rc = pool_set_quota(m->pool, t->number, quota, e);
    if (rc == 0 || pool_set_quota(m->pool, t->number, &rest, NULL) == 0) {
        (void)snprintf(t->name, sizeof t->name, "%s", name);
        m->softs -= was.quota.soft != UINT64_MAX;
        m->softs += quota->soft != UINT64_MAX;
    }
    return rc;
}

void memory_unlimit(struct memory *m)
{
    const struct pool_quota none = POOL_QUOTA_NONE;
    for (struct memory_tenant *t = m->tenants; t != NULL; t = t->hh.next) {
        /* cannot fail: only a guarantee can be refused */
        (void)pool_set_quota(m->pool, t->number, &none, NULL);
        t->spilled_limit = t->spilled_most = UINT64_MAX;
    }
    m->softs = 0;
    m->changes++;
}

void memory_spilled(struct memory *m, unsigned number, uint64_t bytes, bool comes)
{
    struct memory_tenant *t = m->numbered[number];
    m->changes++;
    if (t == NULL) {
        return;
    }
    t->spilled = comes ? t->spilled + bytes : t->spilled - bytes;
    if (!comes && t->spilled_most > t->spilled_limit) {
        t->spilled_most = t->spilled > t->spilled_limit ? t->spilled : t->spilled_limit;
    }
}

uint64_t memory_host_room(const struct memory *m, unsigned number, uint64_t back)
{
    const struct memory_tenant *t = m->numbered[number];
    return t == NULL || t->spilled_most == UINT64_MAX
               ? UINT64_MAX
               : sat_sub(sat_add(t->spilled_most, back), t->spilled);
}

/* A tenant without a section in the configuration has the name of its user, which the front's
 * key contains. */
const char *memory_tenant_name(const struct memory *m, uint64_t key, char out[32])
{
    const struct memory_tenant *t = NULL;
    HASH_FIND(hh, m->tenants, &key, sizeof key, t);
    if (t != NULL && t->name[0] != '\0') {
        return t->name;
    }
    if (key == 0) {
        return "gpud";
    }
    (void)snprintf(out, 32, "uid:%" PRIu64, key - 1);
    return out;
}

void memory_use(const struct memory *m, const struct memory_tenant *t, struct memory_use *ret_use)
{
    struct pool_account a;
    pool_account(m->pool, t->number, &a);
    *ret_use = (struct memory_use){.asked = a.meter.asked + t->shared,
                                   .mapped = a.mapped + a.reserved,
                                   .peak = a.meter.peak,
                                   .shared = t->shared,
                                   .spilled = t->spilled};
}

void memory_report_anew(struct memory *m)
{
    for (struct memory_tenant *t = m->tenants; t != NULL; t = t->hh.next) {
        t->reported = (struct memory_use){.asked = 0};
    }
}

/* ---- pieces ----------------------------------------------------------------------------------*/

/* Uses pages where the device has them: then no request fails because free memory is fragmented. */
int memory_init(struct memory *m, const struct memory_device *on, uint64_t limit,
                uint64_t max_alloc, struct err *e)
{
    const struct backend *b = on->b;
    struct backend_device *d = on->d;
    *m = (struct memory){.b = b, .d = d, .streams = on->streams, .limit = limit, .most = limit};
    memcpy(m->stream, on->stream, on->streams * sizeof m->stream[0]);
    m->mapping = (struct mapping){
        .b = b, .d = d, .scrub = on->scrub, .quiet = quiet, .data = m, .why = ERR_INIT};
    uint64_t page = b->pages != NULL ? b->pages->page_bytes(d) : 0;
    m->pages = mapping_pages(&m->mapping, page);
    int rc = page != 0 ? mapping_init(&m->mapping, on->wake, on->wake_data, e) : 0;
    if (rc != 0) {
        return rc;
    }
    m->blocks = (struct pool_blocks){
        .alloc = block_alloc, .free = block_free, .max_block = max_alloc, .chunk = CHUNK_BYTES};
    const struct pool_source source = {.user = m,
                                       .clear = clear_new,
                                       .pages = page != 0 ? &m->pages : NULL,
                                       .blocks = page != 0 ? NULL : &m->blocks,
                                       .wait = stream_wait,
                                       .issued = m->mapping.mapper != NULL ? calls_issued : NULL,
                                       .reached = stream_reached,
                                       .budget = b->memory->room != NULL ? device_room : NULL};
    const struct pool_options options = {.limit = limit,
                                         .streams = on->streams,
                                         .keep = limit / MEMORY_KEEP,
                                         .trim_age_ns = MEMORY_AGE_NS,
                                         .trim_rate = MEMORY_RATE};
    m->stay = percent_of(limit, FRAME_STAY_PERCENT);
    rc = pool_create(&source, &options, &m->pool, e);
    m->mapping.pool = m->pool;
    if (rc == 0) {
        pool_stay_most(m->pool, m->stay);
    }
    return rc;
}

static void tenants_finish(struct memory *m)
{
    struct memory_tenant *t;
    struct memory_tenant *next;
    HASH_ITER(hh, m->tenants, t, next)
    {
        HASH_DEL(m->tenants, t);
        free(t);
    }
}

void memory_finish(struct memory *m)
{
    pool_destroy(m->pool);
    m->pool = m->mapping.pool = NULL;
    mapping_finish(&m->mapping);
    tenants_finish(m);
}

bool memory_ahead(struct memory *m, uint64_t most, struct backend_ref *ret_ref, uint64_t *ret_bytes)
{
    if (HASH_COUNT(m->tenants) < 2 || m->zeroing.range != NULL ||
        !pool_unclean(m->pool, most, &m->zeroing)) {
        return false;
    }
    if (m->zeroing.ticket != 0) { /* it is not mapped yet */
        pool_cleared(m->pool, &m->zeroing, false, memory_service(m), 0);
        return false;
    }
    *ret_ref = (struct backend_ref){.block = m->zeroing.range, .offset = m->zeroing.offset};
    *ret_bytes = m->zeroing.size;
    return true;
}

void memory_ahead_end(struct memory *m, bool zeros)
{
    pool_cleared(m->pool, &m->zeroing, zeros, memory_service(m), 0);
}

/* Memory that is being zeroed must not make a request fail. It becomes free again, as dirty as
 * it was, and its next user is ordered behind the zeros. */
static void ahead_yield(struct memory *m)
{
    unsigned service = memory_service(m);
    if (m->zeroing.range != NULL) {
        pool_cleared(m->pool, &m->zeroing, false, service, m->timeline.stream[service].last);
    }
}

int memory_alloc(struct memory *m, const struct memory_ask *ask, struct memory_piece *ret_piece,
                 struct err *e)
{
    struct memory_piece piece = {.ref = {.block = NULL}};
    const struct pool_ask wanted = {.size = ask->size,
                                    .stream = ask->stream,
                                    .tenant = number_of(m, ask->tenant, NUMBERS_NS),
                                    .tag = ask->tag,
                                    .prompt = ask->stream >= memory_copies(m),
                                    .place = ask->place,
                                    .align = ask->align};
    m->waited = false;
    ahead_yield(m);
    int rc = pool_alloc(m->pool, &wanted, &piece.pool, e);
    rc = given_back(m, rc) ? pool_alloc(m->pool, &wanted, &piece.pool, e) : rc;
    if (rc == 0) {
        piece.waits = m->waited;
        piece.ref = (struct backend_ref){.block = piece.pool.range, .offset = piece.pool.offset};
        piece.dirty = piece.pool.foreign || wanted.tenant == TENANT_REST;
        *ret_piece = piece;
        if (piece.pool.ticket != 0) {
            mapper_watch(m->mapping.mapper);
        }
    }
    return rc;
}

enum pool_late memory_late(const struct memory *m, struct memory_piece *piece)
{
    bool pooled = piece->ref.block != NULL && piece->kind == MEMORY_POOL;
    enum pool_late late = pooled ? pool_piece_late(m->pool, &piece->pool) : POOL_READY;
    piece->dirty = piece->dirty || (pooled && piece->pool.foreign);
    return late;
}

bool memory_unmapped(const struct memory_piece *piece)
{
    return piece->ref.block != NULL && piece->kind == MEMORY_POOL && piece->pool.ticket != 0;
}

bool memory_poll(struct memory *m)
{
    bool any = mapping_poll(&m->mapping);
    m->changes += any;
    m->hung = m->hung || m->mapping.hung;
    return any;
}

void memory_settle(struct memory *m)
{
    mapping_drain(&m->mapping, SETTLE_NS);
    m->changes++;
}

static int apart_take(struct memory *m, struct memory_piece *piece, struct err *e)
{
    const struct backend_memory_ops *ops = m->b->memory;
    return piece->kind == MEMORY_SHARED
               ? ops->alloc_shared(m->d, piece->pool.size, &piece->ref.block, e)
               : ops->alloc_managed(m->d, piece->pool.size, &piece->ref.block, e);
}

/* Allocates outside the pool. If the driver has no memory, the pool gives its cached memory back
 * first. */
static int apart_alloc(struct memory *m, struct memory_piece piece, uint64_t tenant,
                       struct memory_piece *ret_piece, struct err *e)
{
    uint64_t size = piece.pool.size;
    piece.dirty = true;
    piece.pool.tenant = (uint16_t)number_of(m, tenant, NUMBERS_NS);
    ahead_yield(m);
    int rc = pool_reserve(m->pool, piece.pool.tenant, size, e);
    rc = given_back(m, rc) ? pool_reserve(m->pool, piece.pool.tenant, size, e) : rc;
    if (rc != 0) {
        return rc;
    }
    piece.account = tenant_find(m, tenant);
    if (piece.account != NULL) {
        piece.account->shared += size;
    }
    rc = apart_take(m, &piece, e);
    if (rc == ERR_DEVICE_MEMORY) {
        memory_trim(m);
        memory_settle(m);
        rc = apart_take(m, &piece, e);
    }
    if (rc != 0) {
        uncharge(m, piece.pool.tenant, piece.account, size);
        return rc;
    }
    m->exported += piece.kind == MEMORY_SHARED ? size : 0;
    *ret_piece = piece;
    return 0;
}

/* The size is rounded up to whole pages, which are charged and zeroed: the process that maps
 * exported memory gets all of its last page. */
int memory_alloc_shared(struct memory *m, uint64_t size, uint64_t tenant,
                        struct memory_piece *ret_piece, struct err *e)
{
    uint64_t page = m->pages.page_bytes != 0 ? m->pages.page_bytes : POOL_ALIGN;
    const struct memory_piece piece = {.kind = MEMORY_SHARED,
                                       .pool = {.size = rounded(size, page)}};
    return m->b->memory->alloc_shared == NULL
               ? err_set(e, ERR_UNSUPPORTED, "back end %s exports no memory", m->b->name)
               : apart_alloc(m, piece, tenant, ret_piece, e);
}

bool memory_may_manage(const struct memory *m, uint64_t size)
{
    return rounded(size, POOL_ALIGN) <=
           sat_sub(m->managed_limit, sat_add(m->managed, m->managed_promised));
}

int memory_alloc_managed(struct memory *m, uint64_t size, uint64_t tenant,
                         struct memory_piece *ret_piece, struct err *e)
{
    const struct memory_piece piece = {.kind = MEMORY_MANAGED,
                                       .pool = {.size = rounded(size, POOL_ALIGN)}};
    if (m->b->memory->alloc_managed == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "back end %s has no managed memory", m->b->name);
    }
    if (m->managed_limit == 0) {
        return err_set(e, ERR_UNSUPPORTED, "managed memory is off: see [memory] managed_limit");
    }
    if (!memory_may_manage(m, size) &&
        !(given_back(m, ERR_DEVICE_MEMORY) && memory_may_manage(m, size))) {
        return err_set(e, ERR_DEVICE_MEMORY,
                       "managed memory takes %" PRIu64 " of %" PRIu64
                       " bytes: free some, or see [memory] managed_limit",
                       m->managed + m->managed_promised, m->managed_limit);
    }
    int rc = apart_alloc(m, piece, tenant, ret_piece, e);
    m->managed += rc == 0 ? piece.pool.size : 0;
    return rc;
}

int memory_share(struct memory *m, const struct memory_piece *piece, int *ret_fd,
                 uint64_t *ret_bytes, struct err *e)
{
    return piece->kind == MEMORY_SHARED
               ? m->b->memory->share(m->d, piece->ref.block, ret_fd, ret_bytes, e)
               : err_set(e, ERR_STATE, "the buffer was not created for export");
}

void memory_cleaned(struct memory_piece *piece)
{
    piece->dirty = false;
    piece->pool.foreign = false;
}

void memory_soiled(struct memory_piece *piece)
{
    piece->dirty = true;
    piece->pool.foreign = true;
}

void memory_moved(struct memory_piece *piece, struct pool_move *move)
{
    pool_piece_moved(&piece->pool, move);
    piece->ref = (struct backend_ref){.block = piece->pool.range, .offset = piece->pool.offset};
}

/* A piece that was not cleaned stays dirty, because the pool remembers it. */
void memory_free(struct memory *m, struct memory_piece *piece)
{
    if (piece->ref.block == NULL || piece->kind == MEMORY_FIXED) {
        piece->ref.block = NULL;
        return;
    }
    m->changes++;
    if (piece->kind == MEMORY_POOL) {
        /* it fails only for a piece that is not live */
        (void)pool_free(m->pool, &piece->pool, 0, 0, NULL);
    } else {
        give_back(&(struct leaving){.m = m,
                                    .block = piece->ref.block,
                                    .bytes = piece->pool.size,
                                    .kind = piece->kind,
                                    .tenant = piece->pool.tenant,
                                    .account = piece->account});
    }
    piece->ref.block = NULL;
}

void memory_free_at(struct memory *m, struct memory_piece *piece,
                    const struct timeline_point *point)
{
    (void)pool_free(m->pool, &piece->pool, point->stream, point->seq, NULL);
    piece->ref.block = NULL;
    m->changes++;
}

void memory_vacate(struct memory *m, struct memory_piece *piece, struct pool_place *ret_place)
{
    unsigned service = memory_service(m);
    if (piece->kind != MEMORY_POOL) {
        memory_free(m, piece);
        return;
    }
    (void)pool_vacate(m->pool, &piece->pool, service, m->timeline.stream[service].last, ret_place,
                      NULL);
    piece->ref.block = NULL;
}

bool memory_service_busy(const struct memory *m)
{
    return m->timeline.stream[memory_service(m)].first != NULL;
}

bool memory_service_passed(const struct memory *m, uint64_t seq)
{
    return m->timeline.stream[memory_service(m)].done >= seq;
}

bool memory_settled(const struct memory *m, const struct memory_piece *piece)
{
    return !piece->waits && !memory_service_busy(m);
}

void memory_trim(struct memory *m)
{
    (void)pool_trim(m->pool, 0);
}

uint64_t memory_tick(struct memory *m, uint64_t now_ns)
{
    return pool_tick(m->pool, now_ns);
}

bool memory_has_surplus(struct memory *m)
{
    struct pool_stats s;
    pool_stats(m->pool, &s);
    return s.cached > 0 && s.size > m->limit / MEMORY_KEEP;
}

void memory_stamp(struct memory *m, uint64_t now_ns)
{
    if (now_ns - m->stamped_ns >= NS_PER_MS) {
        m->stamped_ns = now_ns;
        pool_stamp(m->pool, now_ns);
    }
}

void memory_stats(const struct memory *m, struct msg_w_pool *ret_stats)
{
    struct pool_stats s;
    pool_stats(m->pool, &s);
    *ret_stats = (struct msg_w_pool){.size = s.size,
                                     .used = s.used,
                                     .peak = s.peak,
                                     .cached = s.cached,
                                     .largest_free = s.largest_free,
                                     .allocations = s.allocations,
                                     .frees = s.frees,
                                     .hits = s.hits,
                                     .failures = s.failures,
                                     .driver_calls = s.driver_calls,
                                     .live = s.live,
                                     .staying = s.staying,
                                     .managed = m->managed,
                                     .managed_limit = m->managed_limit};
}

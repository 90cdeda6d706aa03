#include "tests/unit/pool/late_source.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static int append(struct late_source *l, struct late_call call)
{
    ck_assert_uint_lt(l->issued - l->done, LATE_CALLS - 1);
    l->call[++l->issued % LATE_CALLS] = call;
    return 0;
}

static int reserve(void *user, uint64_t bytes, void **ret_range, struct err *e)
{
    struct late_source *l = user;
    return l->fake.pages.reserve(&l->fake, bytes, ret_range, e);
}

static void release(void *user, void *range, uint64_t bytes)
{
    struct late_source *l = user;
    late_run_all(l);
    for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
        if (l->stuck[i]) {
            return;
        }
    }
    l->fake.pages.release(&l->fake, range, bytes);
}

static int create(void *user, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    struct late_source *l = user;
    (void)e;
    ck_assert_uint_lt(l->handles + 1, LATE_HANDLES);
    *ret_handle = ++l->handles;
    return append(l, (struct late_call){LATE_CREATE, 0, bytes, l->handles});
}

static void destroy(void *user, uint64_t handle, uint64_t bytes)
{
    (void)append(user, (struct late_call){LATE_DESTROY, 0, bytes, handle});
}

static int map(void *user, void *range, uint64_t at, uint64_t handle, uint64_t bytes, struct err *e)
{
    (void)range;
    (void)e;
    return append(user, (struct late_call){LATE_MAP, at, bytes, handle});
}

static int unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)range;
    (void)e;
    return append(user, (struct late_call){LATE_UNMAP, at, bytes, 0});
}

static int access_range(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)range;
    (void)e;
    return append(user, (struct late_call){LATE_ACCESS, at, bytes, 0});
}

static int clear(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)range;
    (void)e;
    return append(user, (struct late_call){LATE_CLEAR, at, bytes, 0});
}

static int wait_stream(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    struct late_source *l = user;
    return l->fake.source.wait(&l->fake, stream, on, seq, e);
}

static uint64_t issued(void *user)
{
    return ((const struct late_source *)user)->issued;
}

void late_init(struct late_source *l, uint64_t capacity, uint64_t page, uint64_t handle_max)
{
    memset(l, 0, sizeof *l);
    fake_pages_init(&l->fake, capacity);
    l->fake.pages.page_bytes = page;
    l->fake.pages.handle_max = handle_max;
    l->call = calloc(LATE_CALLS, sizeof *l->call);
    l->handle = calloc(LATE_HANDLES, sizeof *l->handle);
    l->bad = calloc(FAKE_SLOTS, sizeof *l->bad);
    l->stuck = calloc(FAKE_SLOTS, sizeof *l->stuck);
    ck_assert(l->call != NULL && l->handle != NULL && l->bad != NULL && l->stuck != NULL);
    l->pages = (struct pool_pages){.page_bytes = page,
                                   .handle_max = handle_max,
                                   .reserve = reserve,
                                   .release = release,
                                   .create = create,
                                   .destroy = destroy,
                                   .map = map,
                                   .unmap = unmap,
                                   .access = access_range};
    l->source = (struct pool_source){
        .user = l, .clear = clear, .pages = &l->pages, .wait = wait_stream, .issued = issued};
}

static bool any(const struct late_source *l, const bool *set, const struct late_call *c)
{
    bool found = false;
    for (uint64_t s = c->at; s < c->at + c->bytes; s += l->pages.page_bytes) {
        found = found || set[s / l->pages.page_bytes];
    }
    return found;
}

static void put(const struct late_source *l, bool *set, const struct late_call *c, bool value)
{
    for (uint64_t s = c->at; s < c->at + c->bytes; s += l->pages.page_bytes) {
        set[s / l->pages.page_bytes] = value;
    }
}

static void failed(struct late_source *l, uint64_t number, uint64_t at, uint64_t bytes, bool lost)
{
    l->failures++;
    if (l->pool != NULL) {
        pool_failed(l->pool, number, at, bytes, lost);
    }
}

static void run_map(struct late_source *l, const struct late_call *c, uint64_t n, bool fails)
{
    bool stuck = any(l, l->stuck, c);
    if (l->handle[c->handle] == 0 || stuck || fails ||
        l->fake.pages.map(&l->fake, &l->fake, c->at, l->handle[c->handle], c->bytes, NULL) != 0) {
        put(l, l->bad, c, true);
        failed(l, n, c->at, c->bytes, stuck);
    }
}

static void run_unmap(struct late_source *l, const struct late_call *c, bool fails)
{
    if (any(l, l->bad, c)) {
        put(l, l->bad, c, false);
    } else if (fails) {
        l->failures++;
        put(l, l->stuck, c, true);
        if (l->pool != NULL) {
            pool_lost(l->pool, c->bytes);
        }
    } else {
        ck_assert_int_eq(l->fake.pages.unmap(&l->fake, &l->fake, c->at, c->bytes, NULL), 0);
    }
}

static void run_access(struct late_source *l, const struct late_call *c, uint64_t n, bool fails)
{
    uint64_t page = l->pages.page_bytes;
    for (uint64_t at = c->at; at < c->at + c->bytes; at += page) {
        if (l->bad[at / page]) {
            continue;
        }
        if (fails || l->fake.pages.access(&l->fake, &l->fake, at, page, NULL) != 0) {
            failed(l, n, at, page, false);
        }
    }
}

static void run_clear(struct late_source *l, const struct late_call *c, uint64_t n, bool fails)
{
    if ((fails || (l->clears != NULL && !l->clears())) && l->pool != NULL) {
        pool_uncleared(l->pool, n, c->at, c->bytes);
    }
}

static void run_one(struct late_source *l)
{
    uint64_t n = l->done + 1;
    const struct late_call c = l->call[n % LATE_CALLS];
    bool fails = l->fails != NULL && l->fails(&c, n);
    switch (c.kind) {
    case LATE_CREATE:
        if (fails || l->fake.pages.create(&l->fake, c.bytes, &l->handle[c.handle], NULL) != 0) {
            l->handle[c.handle] = 0;
        }
        break;
    case LATE_MAP:
        run_map(l, &c, n, fails);
        break;
    case LATE_UNMAP:
        run_unmap(l, &c, fails);
        break;
    case LATE_ACCESS:
        run_access(l, &c, n, fails);
        break;
    case LATE_CLEAR:
        run_clear(l, &c, n, fails);
        break;
    case LATE_DESTROY:
        if (l->handle[c.handle] != 0 && l->fake.mapped[l->handle[c.handle] - 1] == 0) {
            l->fake.pages.destroy(&l->fake, l->handle[c.handle], c.bytes);
        }
        break;
    }
    l->done = n;
}

void late_run(struct late_source *l, uint64_t calls)
{
    while (calls > 0 && l->done < l->issued) {
        run_one(l);
        calls--;
    }
    if (l->pool != NULL) {
        pool_mapped(l->pool, l->done);
    }
}

void late_run_all(struct late_source *l)
{
    late_run(l, UINT64_MAX);
}

void late_finish(struct late_source *l)
{
    late_run_all(l);
    fake_finish(&l->fake);
    free(l->call);
    free(l->handle);
    free(l->bad);
    free(l->stuck);
}

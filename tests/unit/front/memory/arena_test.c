/* Arenas in the front: which parts jobs may name, who waits for whom because of them, what is done
 * twice, and whose memory is refused. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include "daemon/front/memory/arenas.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/hazard.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/recipe.h"

#define BYTES 65536u

static struct fake *k;
static struct recipe r;
static struct arena *arena;
static struct session other;

static void setup(void)
{
    struct err e = ERR_INIT;
    k = fake_create();
    ck_assert_int_eq(building_init(&k->f, NULL), 0);
    recipe_init(&r, k);
    arena = arena_create(BYTES);
    ck_assert_ptr_nonnull(arena);
    ck_assert_int_eq(arena_make_memory(arena, &e), 0);
    arena->owner = k->session;
    DL_APPEND2(k->session->own_arenas, arena, owned_prev, owned_next);
    arena->tenant = k->tenant;
    arena->handle = idmap_add(&k->f.arenas, arena);
    r.arenas = &k->f.arenas;
    r.devices = 1;
}

static void teardown(void)
{
    recipe_finish(&r);
    ck_assert_uint_eq(arena->users, 0);
    ck_assert_ptr_null(arena->parts);
    (void)idmap_remove(&k->f.arenas, arena->handle);
    arena_destroy(arena);
    building_finish(&k->f);
    fake_destroy(k);
}

static struct proto_arg part(int access, uint64_t first, uint64_t count)
{
    return (struct proto_arg){.tag = ARG_ARENA,
                              .access = (uint64_t)access,
                              .handle = arena->handle,
                              .first = first,
                              .dtype = DTYPE_F32,
                              .ndim = 1,
                              .d0 = count};
}

/* y = a x, both in the arena. */
static int scale(struct proto_arg x, struct proto_arg y)
{
    recipe_reset(&r);
    recipe_arg(&r, arg_scalar(DTYPE_F32, 0x40000000));
    recipe_arg(&r, x);
    recipe_arg(&r, y);
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = recipe_kernel(k, "scale")});
    return recipe_resolve(&r);
}

static unsigned steps(unsigned op)
{
    unsigned count = 0;
    for (unsigned i = 0; i < r.work.step_count; i++) {
        count += r.work.steps[i].op == op;
    }
    return count;
}

START_TEST(parts_are_copied_in_and_out)
{
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 4096, 100)), 0);
    ck_assert_uint_eq(steps(OP_WRITE), 1);
    ck_assert_uint_eq(steps(OP_LAUNCH), 1);
    ck_assert_uint_eq(steps(OP_READ), 1);
    ck_assert_uint_eq(r.work.input_bytes + r.work.output_bytes, 0); /* nothing by the socket */
    ck_assert_uint_eq(r.work.arena_count, 2);
    ck_assert_int_eq(r.work.arenas[0].access, ACCESS_IN);
    ck_assert_int_eq(r.work.arenas[1].access, ACCESS_OUT);
    ck_assert_uint_eq(r.work.arenas[1].begin, 4096);
    ck_assert_uint_eq(r.work.arenas[1].end, 4496);
}
END_TEST

START_TEST(offsets_and_lengths_are_checked)
{
    static const struct {
        uint64_t first, count;
        int code;
    } cases[] = {
        {BYTES - 400, 100, 0},
        {BYTES - 396, 100, ERR_RANGE},
        {BYTES, 1, ERR_RANGE},
        {BYTES, 0, 0},
        {BYTES + 4, 0, ERR_RANGE},
        {UINT64_MAX, 1, ERR_RANGE},
        {UINT64_MAX - 3, 1, ERR_RANGE},
        {UINT64_MAX - 399, 100, ERR_RANGE}, /* the sum is 0 */
        {4, UINT64_MAX / 4, ERR_ARG_SHAPE},
        {0, UINT64_C(1) << 62, ERR_ARG_SHAPE},
        {2, 1, ERR_RANGE}, /* not aligned */
        {3, 1, ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct proto_arg p = part(0, cases[i].first, cases[i].count);
        recipe_reset(&r);
        recipe_temp(&r, DTYPE_F32, cases[i].count < 1000 ? cases[i].count : 1);
        recipe_arg(&r, arg_temp(0, 0, 0));
        recipe_arg(&r, p);
        recipe_step(&r, (struct proto_step){.op = OP_WRITE});
        int rc = recipe_resolve(&r);
        bool right = rc == cases[i].code || (cases[i].code == ERR_ARG_SHAPE && rc == ERR_RANGE) ||
                     (cases[i].code == ERR_ARG_SHAPE && rc == ERR_LIMIT);
        ck_assert_msg(right, "case %zu: %s: %s", i, err_name(rc), r.e.text);
    }
}
END_TEST

START_TEST(only_its_own_session_may_name_it)
{
    struct proto_arg p = part(0, 0, 10);
    p.handle++;
    ck_assert_int_eq(scale(p, part(0, 4096, 10)), ERR_BAD_HANDLE);
    p.handle = arena->handle - (UINT64_C(1) << 32);
    ck_assert_int_ne(scale(p, part(0, 4096, 10)), 0);
    arena->owner = &other;
    ck_assert_int_eq(scale(part(0, 0, 10), part(0, 4096, 10)), ERR_BAD_HANDLE);
    ck_assert_ptr_null(strstr(r.e.text, "another"));
    arena->owner = k->session;
    int fd = arena->fd;
    arena->fd = -1; /* not brought yet */
    ck_assert_int_eq(scale(part(0, 0, 10), part(0, 4096, 10)), ERR_STATE);
    arena->fd = fd;
    r.arenas = NULL;
    ck_assert_int_eq(scale(part(0, 0, 10), part(0, 4096, 10)), ERR_BAD_HANDLE);
    r.arenas = &k->f.arenas;
}
END_TEST

/* The same rule as for buffers, though each array may be copied: what a job computes does not
 * depend on which of them is. */
START_TEST(parts_that_share_memory_are_one_array_or_apart)
{
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 0, 100)), 0);
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 400, 100)), 0);
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 396, 100)), ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(r.e.text, "arguments x and y share memory"));
    ck_assert_int_eq(scale(part(0, 4, 100), part(0, 0, 100)), ERR_RANGE);
}
END_TEST

START_TEST(declared_access_is_kept)
{
    ck_assert_int_eq(scale(part(ACCESS_IN, 0, 10), part(ACCESS_OUT, 4096, 10)), 0);
    ck_assert_int_eq(scale(part(ACCESS_IN, 0, 10), part(ACCESS_IN, 4096, 10)), ERR_ARG_ACCESS);
    ck_assert_int_eq(scale(part(ACCESS_OUT, 0, 10), part(ACCESS_OUT, 4096, 10)), ERR_ARG_ACCESS);
}
END_TEST

/* On processors of the host kernels work on the arena itself, once all workers can. */
START_TEST(kernels_work_on_it_where_all_can)
{
    arena->align = 128;
    r.devices = r.processors = 3;
    arena->mapped.word[0] = 1; /* one of two */
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 4096, 100)), 0);
    ck_assert_uint_eq(steps(OP_WRITE), 1);
    arena->mapped.word[0] = 3;
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 4096, 100)), 0);
    ck_assert_uint_eq(r.work.step_count, 1);
    ck_assert_uint_eq(r.work.refs[1].tag, REF_ARENA);
    ck_assert_uint_eq(r.work.refs[2].offset, 4096);
    ck_assert_uint_eq(r.work.arena_count, 2);                         /* hazards all the same */
    ck_assert_int_eq(scale(part(0, 64, 100), part(0, 4096, 100)), 0); /* not aligned: a copy */
    ck_assert_uint_eq(steps(OP_WRITE), 1);
    ck_assert_uint_eq(steps(OP_READ), 0);
    r.processors = 1; /* a bus is between one of them and the host */
    ck_assert_int_eq(scale(part(0, 0, 100), part(0, 4096, 100)), 0);
    ck_assert_uint_eq(steps(OP_WRITE), 1);
    struct proto_arg wished = part(0, 0, 100);
    wished.bits = ARENA_DIRECT;
    ck_assert_int_eq(scale(wished, part(0, 4096, 100)), 0);
    ck_assert_uint_eq(steps(OP_WRITE), 0);
    ck_assert_uint_eq(steps(OP_READ), 1);
}
END_TEST

/* What would look twice at values that are places gets a copy: the client may change them. */
START_TEST(operations_get_copies)
{
    arena->align = 4;
    r.devices = r.processors = 1;
    arena->mapped.word[0] = 1;
    struct proto_arg keys = part(0, 0, 1000);
    keys.dtype = DTYPE_U32;
    recipe_arg(&r, keys);
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = recipe_kernel(k, "sort")});
    ck_assert_msg(recipe_resolve(&r) == 0, "%s", r.e.text);
    for (unsigned i = 0; i < r.work.step_count; i++) {
        const struct work_step *s = &r.work.steps[i];
        for (unsigned n = 0; s->op == OP_LAUNCH && n < s->ref_count; n++) {
            ck_assert_uint_ne(r.work.refs[s->first_ref + n].tag, REF_ARENA);
        }
    }
}
END_TEST

static struct job *user(int access, uint64_t begin, uint64_t end)
{
    struct job *j = fake_job(k, 0);
    struct work_arena *u = work_add_arena(&j->work, arena);
    ck_assert_ptr_nonnull(u);
    u->access = access;
    u->begin = begin;
    u->end = end;
    (void)fake_submit(k, j);
    return j;
}

static unsigned preds(const struct job *j)
{
    unsigned count = 0;
    for (const struct job_edge *x = j->order.preds; x != NULL; x = x->next_pred) {
        count++;
    }
    return count;
}

static void end(struct job *j)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "by the test");
    job_conclude(&k->f, j, JOB_CANCELLED, &e);
}

START_TEST(parts_that_overlap_are_ordered)
{
    struct job *r1 = user(ACCESS_IN, 0, 100);
    struct job *r2 = user(ACCESS_IN, 50, 150);
    struct job *w1 = user(ACCESS_OUT, 100, 200);
    struct job *w2 = user(ACCESS_OUT, 200, 300); /* touches, does not overlap */
    struct job *w3 = user(ACCESS_INOUT, 0, 1000);
    struct job *r3 = user(ACCESS_IN, 250, 260);
    ck_assert_uint_eq(preds(r1), 0);
    ck_assert_uint_eq(preds(r2), 0);
    ck_assert_uint_eq(preds(w1), 1);
    ck_assert_uint_eq(preds(w2), 0);
    ck_assert_uint_eq(preds(w3), 4);
    ck_assert_uint_eq(preds(r3), 2); /* w2 and w3 */
    ck_assert_uint_eq(arena->users, 6);
    end(r2);
    ck_assert_uint_eq(preds(w1), 0);
    end(w3); /* out of turn */
    ck_assert_uint_gt(preds(r3), 0);
    end(w2);
    end(r1);
    end(w1);
    end(r3);
    ck_assert_uint_eq(arena->users, 0);
}
END_TEST

/* A new job is compared with a bounded number of parts, in however many arenas they lie. */
START_TEST(parts_in_use_are_limited)
{
    struct err e = ERR_INIT;
    struct arena *second = arena_create(4096);
    struct job *j = fake_job(k, 0);
    for (unsigned i = 0; i < 4; i++) {
        struct work_arena *u = work_add_arena(&j->work, (i & 1) != 0 ? arena : second);
        ck_assert_ptr_nonnull(u);
        u->access = ACCESS_IN;
    }
    arena->users = ARENA_PARTS_MAX / 2; /* as if jobs used them */
    second->users = ARENA_PARTS_MAX / 2 - 3;
    ck_assert_int_eq(hazard_enter(j, &e), ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(e.text, "8193 parts"));
    ck_assert_ptr_nonnull(strstr(e.text, "8192 (ARENA_PARTS_MAX)"));
    ck_assert_ptr_null(arena->parts);
    second->users--;
    (void)fake_submit(k, j);
    end(j);
    ck_assert_uint_eq(arena->users, ARENA_PARTS_MAX / 2);
    arena->users = 0;
    arena_destroy(second);
}
END_TEST

static bool clash(const struct job *a, const struct job *b)
{
    for (unsigned i = 0; i < a->work.arena_count; i++) {
        for (unsigned n = 0; n < b->work.arena_count; n++) {
            const struct work_arena *x = &a->work.arenas[i];
            const struct work_arena *y = &b->work.arenas[n];
            if (x->arena == y->arena && ((x->access | y->access) & ACCESS_OUT) != 0 &&
                x->begin < y->end && y->begin < x->end) {
                return true;
            }
        }
    }
    return false;
}

static bool comes_after(const struct job *j, const struct job *pred)
{
    const struct job_edge *x = j->order.preds;
    while (x != NULL && x->pred != pred) {
        x = x->next_pred;
    }
    return x != NULL;
}

/* Many parts of two arenas: a job comes after exactly those that it clashes with, seen part by
 * part. */
START_TEST(parts_are_ordered_as_if_each_were_looked_at)
{
    enum { JOBS = 40, PARTS = 12 };
    struct arena *second = arena_create(4096);
    struct job *job[JOBS];
    uint32_t seed = 7;
    second->owner = k->session;
    second->tenant = k->tenant;
    for (unsigned i = 0; i < JOBS; i++) {
        job[i] = fake_job(k, 0);
        for (unsigned n = 0; n < PARTS; n++) {
            struct work_arena *u = work_add_arena(&job[i]->work, (n & 1) != 0 ? arena : second);
            ck_assert_ptr_nonnull(u);
            seed = seed * 1664525u + 1013904223u;
            u->begin = seed >> 16 & 0xfff;
            u->end = u->begin + (seed >> 28); /* some are empty */
            u->access = (seed >> 13 & 7) == 0 ? ACCESS_OUT : ACCESS_IN;
        }
        (void)fake_submit(k, job[i]);
        for (unsigned n = 0; n < i; n++) {
            ck_assert_msg(comes_after(job[i], job[n]) == clash(job[i], job[n]), "%u and %u", i, n);
        }
    }
    for (unsigned i = 0; i < JOBS; i++) {
        end(job[i]);
    }
    ck_assert_uint_eq(arena->users + second->users, 0);
    ck_assert_ptr_null(second->parts);
    arena_destroy(second);
}
END_TEST

START_TEST(what_changes_its_input_is_not_repeatable)
{
    struct work w;
    struct job j = {.work = {.device = -1}};
    work_init(&w);
    struct work_arena *in = work_add_arena(&w, arena);
    in->access = ACCESS_IN;
    in->end = 100;
    struct work_arena *out = work_add_arena(&w, arena);
    in = &w.arenas[0];
    out->access = ACCESS_OUT;
    out->begin = 100;
    out->end = 200;
    j.work = w;
    ck_assert(job_repeatable(&j));
    out->begin = 99;
    ck_assert(!job_repeatable(&j));
    out->begin = 100;
    in->access = ACCESS_INOUT;
    ck_assert(!job_repeatable(&j));
    work_finish(&w);
}
END_TEST

static int offered(size_t bytes, unsigned flags, int seals)
{
    struct err e = ERR_INIT;
    struct arena *a = arena_create(4096);
    int fd = memfd_create("own", MFD_CLOEXEC | flags);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    if (seals != 0) {
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    }
    int rc = arena_check_memory(a, fd, &e);
    if (rc == 0) { /* from here on it cannot be taken away */
        ck_assert_int_ne(ftruncate(fd, 0), 0);
    }
    (void)close(fd);
    arena_destroy(a);
    return rc;
}

START_TEST(only_memory_that_stays_is_taken)
{
    ck_assert_int_eq(offered(4096, MFD_ALLOW_SEALING, F_SEAL_SHRINK), 0);
    ck_assert_int_eq(offered(9999, MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    ck_assert_int_eq(offered(4096, MFD_ALLOW_SEALING, 0), ERR_INVALID);
    ck_assert_int_eq(offered(4096, 0, 0), ERR_INVALID);
    ck_assert_int_eq(offered(4096, MFD_ALLOW_SEALING, F_SEAL_GROW), ERR_INVALID);
    ck_assert_int_eq(offered(4095, MFD_ALLOW_SEALING, F_SEAL_SHRINK), ERR_INVALID);
    ck_assert_int_eq(offered(4096, MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_WRITE), ERR_INVALID);
    struct err e = ERR_INIT;
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(arena_check_memory(arena, pipes[0], &e), ERR_INVALID);
    ck_assert_int_eq(arena_check_memory(arena, 9999, &e), ERR_INVALID);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}
END_TEST

/* A worker had no room for it: it is sent again, and not kept as one that the worker lacks.
 */
START_TEST(what_a_worker_could_not_take_is_given_again)
{
    const struct msg_w_arena failed = {.arena = arena->handle};
    const struct msg_w_arena mapped = {.arena = arena->handle, .align = 256};
    const unsigned *dropped = &k->frames[FRAME_KIND_F_ARENA_FREE];
    arena_mapped(&k->f, &k->device[0], &failed); /* it was not told */
    ck_assert_uint_eq(*dropped, 0);
    arena->known.word[0] = 3;
    arena_mapped(&k->f, &k->device[0], &failed);
    ck_assert_uint_eq(*dropped, 1);
    ck_assert_uint_eq(arena->known.word[0], 2);
    arena->known.word[0] = 3;
    arena_mapped(&k->f, &k->device[0], &mapped);
    ck_assert_uint_eq(*dropped, 1);
    ck_assert_uint_eq(arena->known.word[0], 3);
    ck_assert_uint_eq(arena->mapped.word[0], 1);
    ck_assert_uint_eq(arena->align, 256);
    arena->known.word[0] = arena->mapped.word[0] = 0;
}
END_TEST

SUITE_MAIN_IN("arena", setup, teardown, parts_are_copied_in_and_out,
              offsets_and_lengths_are_checked, only_its_own_session_may_name_it,
              declared_access_is_kept, parts_that_share_memory_are_one_array_or_apart,
              kernels_work_on_it_where_all_can, operations_get_copies,
              parts_are_ordered_as_if_each_were_looked_at, parts_that_overlap_are_ordered,
              parts_in_use_are_limited, what_changes_its_input_is_not_repeatable,
              only_memory_that_stays_is_taken, what_a_worker_could_not_take_is_given_again)

/* Jobs of the same kind take about as long. */
#include "daemon/front/sched/kind.h"

#include <string.h>

#include "tests/unit/common/suite.h"

/* A job that launches one kernel over so many items. */
static uint64_t kind(const char *entry, uint64_t items, uint64_t bytes)
{
    struct work w;
    struct err e = ERR_INIT;
    work_init(&w);
    struct work_step *s = work_add_step(&w, OP_LAUNCH, 0, &e);
    ck_assert_ptr_nonnull(s);
    strcpy(s->entry, entry);
    s->global[0] = items;
    struct work_ref *r = work_add_ref(&w);
    ck_assert_ptr_nonnull(r);
    r->size = bytes;
    uint64_t found = kind_of(&w);
    work_finish(&w);
    return found;
}

START_TEST(kinds_tell_kernels_and_sizes_apart)
{
    struct work none;
    work_init(&none);
    ck_assert_uint_eq(kind_of(&none), 0);
    uint64_t one = kind("axpy_f32", 1024, 4096);
    ck_assert_uint_ne(one, 0);
    ck_assert_uint_eq(one, kind("axpy_f32", 1024, 4096));
    ck_assert_uint_eq(one, kind("axpy_f32", 1100, 4400)); /* the same quarter of an octave */
    ck_assert_uint_ne(one, kind("axpy_f64", 1024, 4096));
    ck_assert_uint_ne(one, kind("axpy_f32", 1280, 4096));
    ck_assert_uint_ne(one, kind("axpy_f32", 1024, 8192));
}
END_TEST

SUITE_MAIN("kind", kinds_tell_kernels_and_sizes_apart)

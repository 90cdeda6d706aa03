#include <check.h>

#include "daemon/pool/class.h"
#include "daemon/pool/pool_int.h"

START_TEST(each_size_has_the_smallest_class_that_holds_it)
{
    for (uint64_t size = 1; size <= 2 * POOL_SLAB_MAX; size++) {
        unsigned class = class_of(size);
        uint64_t bytes = class_bytes(class);
        if (bytes < size || bytes % POOL_ALIGN != 0 ||
            (class > 0 && class_bytes(class - 1) >= size)) { /* each assertion costs a write */
            ck_abort_msg("%llu bytes: class %u", LL(size), class);
        }
    }
}
END_TEST

START_TEST(classes_grow_by_at_most_an_eighth)
{
    for (unsigned class = 0; class < CLASS_COUNT - 1; class ++) {
        uint64_t bytes = class_bytes(class);
        ck_assert_uint_eq(class_of(bytes), class);
        ck_assert_uint_eq(class_of(bytes + 1), class + 1);
        uint64_t step = class_bytes(class + 1) - bytes;
        ck_assert(step == POOL_ALIGN || step <= bytes / 8);
    }
    ck_assert_uint_eq(class_bytes(CLASS_COUNT - 1), CLASS_BYTES_MAX);
}
END_TEST

START_TEST(slabs_have_a_class_for_all_their_sizes)
{
    ck_assert_uint_eq(class_of(POOL_SLAB_MAX), SLAB_CLASSES - 1);
    ck_assert_uint_eq(class_bytes(SLAB_CLASSES - 1), POOL_SLAB_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("size classes");
    TCase *t = tcase_create("classes");
    tcase_add_test(t, each_size_has_the_smallest_class_that_holds_it);
    tcase_add_test(t, classes_grow_by_at_most_an_eighth);
    tcase_add_test(t, slabs_have_a_class_for_all_their_sizes);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

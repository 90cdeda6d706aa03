/* Request and response of the compiler, and which of them are refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/compile.h"

START_TEST(a_request_comes_back_as_it_went)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    struct compile_request back;
    const struct compile_request request = {.lang = LANG_OPENCL,
                                            .f64 = true,
                                            .source = bytes_of("kernel\0void", 11),
                                            .file = bytes_str("a.cl"),
                                            .options = bytes_str("-DN=1"),
                                            .arch = bytes_str("arch"),
                                            .signature = bytes_str("f(f32 x)")};
    ck_assert_int_eq(compile_request_write(&request, &m, &e), 0);
    ck_assert_int_eq(compile_request_read(&m, &back, &e), 0);
    ck_assert_int_eq(back.lang, LANG_OPENCL);
    ck_assert(back.f64);
    ck_assert(bytes_equal(back.source, request.source));
    ck_assert(bytes_equal(back.file, request.file));
    ck_assert(bytes_equal(back.options, request.options));
    ck_assert(bytes_equal(back.arch, request.arch));
    ck_assert(bytes_equal(back.signature, request.signature));
    memfd_finish(&m);
}
END_TEST

START_TEST(a_request_over_its_limits_is_not_made)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    uint8_t *large = calloc(1, PROTO_SOURCE_MAX + 1);
    ck_assert_ptr_nonnull(large);
    const struct compile_request request = {.lang = LANG_OPENCL,
                                            .source = bytes_of(large, PROTO_SOURCE_MAX + 1)};
    ck_assert_int_eq(compile_request_write(&request, &m, &e), ERR_LIMIT);
    ck_assert_int_eq(m.fd, -1);
    free(large);
}
END_TEST

START_TEST(a_response_comes_back_as_it_went)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    struct compile_response back;
    const struct compile_response response = {.code = ERR_COMPILE,
                                              .vendor = -11,
                                              .text = bytes_str("text"),
                                              .log = bytes_str("a.cl:1:1: error"),
                                              .binary = bytes_of("\0\1\2", 3)};
    ck_assert_int_eq(compile_response_create(&m, &e), 0);
    ck_assert_int_eq(compile_response_read(&m, &back, &e), ERR_COMPILE_LIMIT);
    ck_assert_int_eq(compile_response_write(&response, &m, &e), 0);
    ck_assert_int_eq(compile_response_read(&m, &back, &e), 0);
    ck_assert_int_eq(back.code, ERR_COMPILE);
    ck_assert_int_eq(back.vendor, -11);
    ck_assert(bytes_equal(back.text, response.text));
    ck_assert(bytes_equal(back.log, response.log));
    ck_assert(bytes_equal(back.binary, response.binary));
    memfd_finish(&m);
}
END_TEST

START_TEST(a_response_tells_what_entries_take)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    struct compile_response back;
    struct capbuf list;
    struct proto_wkernel k = {.entry = bytes_str("f"),
                              .registers = 40,
                              .local_bytes = 16,
                              .shared_bytes = 1024,
                              .max_group = 512,
                              .preferred_multiple = 32,
                              .occupancy = 750000};
    struct proto_wkernel got;
    capbuf_init(&list, 4096);
    ck_assert_int_eq(proto_list_add(&schema_wkernel, &k, &list, &e), 0);
    const struct compile_response response = {.entries = proto_list_of(&list, 1)};
    ck_assert_int_eq(compile_response_create(&m, &e), 0);
    ck_assert_int_eq(compile_response_write(&response, &m, &e), 0);
    ck_assert_int_eq(compile_response_read(&m, &back, &e), 0);
    struct proto_iter it = proto_iter_of(back.entries);
    ck_assert(proto_list_next(&it, &schema_wkernel, &got));
    ck_assert(bytes_equal_str(got.entry, "f"));
    ck_assert_uint_eq(got.registers, 40);
    ck_assert_uint_eq(got.local_bytes, 16);
    ck_assert_uint_eq(got.shared_bytes, 1024);
    ck_assert_uint_eq(got.max_group, 512);
    ck_assert_uint_eq(got.preferred_multiple, 32);
    ck_assert_uint_eq(got.occupancy, 750000);
    capbuf_reset(&list);
    k.occupancy = 1000001;
    ck_assert_int_ne(proto_list_add(&schema_wkernel, &k, &list, &e), 0);
    capbuf_finish(&list);
    memfd_finish(&m);
}
END_TEST

/* Every length that does not fit, and every single byte of the message changed: an error or a
 * message that holds what its schema allows, never a read outside. */
START_TEST(a_damaged_response_is_refused)
{
    struct err e = ERR_INIT;
    struct memfd m = MEMFD_NONE;
    struct compile_response back;
    const struct compile_response response = {.text = bytes_str("text"),
                                              .binary = bytes_of("\0\1\2", 3)};
    const uint64_t lengths[] = {COMPILE_RESPONSE_BYTES - 7, UINT64_MAX, UINT64_MAX - 7, 1, 2};
    uint64_t length = 0;
    ck_assert_int_eq(compile_response_create(&m, &e), 0);
    ck_assert_int_eq(compile_response_write(&response, &m, &e), 0);
    memcpy(&length, m.data, sizeof length);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(m.data, &lengths[i], sizeof lengths[i]);
        ck_assert_int_eq(compile_response_read(&m, &back, &e), ERR_PROTOCOL);
    }
    memcpy(m.data, &length, sizeof length);
    for (size_t at = sizeof length; at < sizeof length + length; at++) {
        uint8_t kept = m.data[at];
        for (unsigned value = 0; value < 256; value++) {
            m.data[at] = (uint8_t)value;
            if (compile_response_read(&m, &back, &e) == 0) {
                ck_assert_int_le(back.code, 0);
                ck_assert(back.binary.size <= length && back.text.size <= length);
            }
        }
        m.data[at] = kept;
    }
    memfd_finish(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_request_comes_back_as_it_went);
    tcase_add_test(all, a_request_over_its_limits_is_not_made);
    tcase_add_test(all, a_response_comes_back_as_it_went);
    tcase_add_test(all, a_response_tells_what_entries_take);
    tcase_add_test(all, a_damaged_response_is_refused);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

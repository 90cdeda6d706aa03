#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/driver/error.h"
#include "daemon/backend/cuda/run/binary.h"

static const uint8_t payload[] = "//\n.version 8.0\n";

static struct backend_compiled wrapped(void)
{
    static struct backend_compiled_kernel kernels[] = {
        {.entry = "axpy",
         .arg_count = 4,
         .arg = {{.kind = 1}, {.kind = 2}, {.kind = 2}, {.kind = 0}}},
        {.entry = "axpy_more", .arg_count = 1, .arg = {{.kind = 3}}},
        {.entry = "nothing"},
    };
    struct backend_compiled c = {.kernels = kernels, .kernel_count = 3};
    struct err e = ERR_INIT;
    ck_assert_int_eq(cuda_binary_wrap("sm_90", bytes_of(payload, sizeof payload), &c, &e), 0);
    return c;
}

static void next_is(struct bytes *kinds, const char *entry, const char *letters)
{
    const char *got[2];
    ck_assert(cuda_binary_next(kinds, &got[0], &got[1]));
    ck_assert_str_eq(got[0], entry);
    ck_assert_str_eq(got[1], letters);
}

START_TEST(keeps_payload_and_kinds)
{
    struct backend_compiled c = wrapped();
    struct cuda_binary parts;
    struct err e = ERR_INIT;
    ck_assert_int_eq(cuda_binary_unwrap("sm_90", bytes_of(c.binary, c.binary_size), &parts, &e), 0);
    ck_assert(bytes_equal(parts.payload, bytes_of(payload, sizeof payload)));
    next_is(&parts.kinds, "axpy", "vmm?");
    next_is(&parts.kinds, "axpy_more", "v");
    next_is(&parts.kinds, "nothing", "");
    const char *none;
    ck_assert(!cuda_binary_next(&parts.kinds, &none, &none));
    static const char cut[] = {'f', '\0', 'v'};
    for (size_t size = 0; size <= sizeof cut; size++) {
        struct bytes kinds = bytes_of(cut, size);
        ck_assert(!cuda_binary_next(&kinds, &none, &none));
    }
    free(c.binary);
}
END_TEST

START_TEST(a_payload_without_kernels_is_one)
{
    struct backend_compiled c = {.kernel_count = 0};
    struct cuda_binary parts;
    ck_assert_int_eq(cuda_binary_wrap("sm_75", bytes_of(payload, 1), &c, NULL), 0);
    ck_assert_int_eq(cuda_binary_unwrap("sm_75", bytes_of(c.binary, c.binary_size), &parts, NULL),
                     0);
    ck_assert_uint_eq(parts.kinds.size, 0);
    ck_assert_uint_eq(parts.payload.size, 1);
    free(c.binary);
}
END_TEST

/* No byte is changed and none is missing unnoticed. */
START_TEST(damage_is_found)
{
    struct backend_compiled c = wrapped();
    struct cuda_binary parts;
    for (size_t i = 0; i < c.binary_size; i++) {
        ck_assert_int_eq(cuda_binary_unwrap("sm_90", bytes_of(c.binary, i), &parts, NULL),
                         ERR_INVALID);
        c.binary[i] ^= 0x40;
        ck_assert_int_eq(
            cuda_binary_unwrap("sm_90", bytes_of(c.binary, c.binary_size), &parts, NULL),
            ERR_INVALID);
        c.binary[i] ^= 0x40;
    }
    free(c.binary);
}
END_TEST

START_TEST(another_architecture_is_named)
{
    struct backend_compiled c = wrapped();
    struct cuda_binary parts;
    struct err e = ERR_INIT;
    ck_assert_int_eq(cuda_binary_unwrap("sm_80", bytes_of(c.binary, c.binary_size), &parts, &e),
                     ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "sm_80"));
    free(c.binary);
}
END_TEST

/* Errors that poison a context end the worker, others do not. */
START_TEST(results_have_their_errors)
{
    static const struct {
        CUresult rc;
        int code;
    } table[] = {
        {CUDA_ERROR_ILLEGAL_ADDRESS, ERR_KERNEL_FAULT},
        {CUDA_ERROR_LAUNCH_TIMEOUT, ERR_KERNEL_FAULT},
        {CUDA_ERROR_ASSERT, ERR_KERNEL_FAULT},
        {CUDA_ERROR_HARDWARE_STACK_ERROR, ERR_KERNEL_FAULT},
        {CUDA_ERROR_ILLEGAL_INSTRUCTION, ERR_KERNEL_FAULT},
        {CUDA_ERROR_MISALIGNED_ADDRESS, ERR_KERNEL_FAULT},
        {CUDA_ERROR_INVALID_ADDRESS_SPACE, ERR_KERNEL_FAULT},
        {CUDA_ERROR_INVALID_PC, ERR_KERNEL_FAULT},
        {CUDA_ERROR_LAUNCH_FAILED, ERR_KERNEL_FAULT},
        {(CUresult)226, ERR_KERNEL_FAULT},
        {CUDA_ERROR_ECC_UNCORRECTABLE, ERR_DEVICE_LOST},
        {CUDA_ERROR_UNKNOWN, ERR_DEVICE_LOST},
        {CUDA_ERROR_OUT_OF_MEMORY, ERR_DEVICE_MEMORY},
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, ERR_LAUNCH},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, ERR_UNSUPPORTED},
        {(CUresult)12345, ERR_INTERNAL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct err e = ERR_INIT;
        ck_assert_int_eq(cuda_error(table[i].rc, "cuFoo", &e), table[i].code);
        ck_assert_int_eq(e.vendor, (int)table[i].rc);
        ck_assert_int_eq(strncmp(e.text, "cuFoo: ", 7), 0);
    }
    ck_assert_str_eq(cuda_error_name(CUDA_ERROR_ASSERT), "CUDA_ERROR_ASSERT");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda");
    TCase *t = tcase_create("binary");
    tcase_add_test(t, keeps_payload_and_kinds);
    tcase_add_test(t, a_payload_without_kernels_is_one);
    tcase_add_test(t, damage_is_found);
    tcase_add_test(t, another_architecture_is_named);
    tcase_add_test(t, results_have_their_errors);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

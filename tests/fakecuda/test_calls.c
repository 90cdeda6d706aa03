/* The double has what the back end asks the driver for, in the ABI that it asks for. */
#include "daemon/backend/cuda/driver/driver.h"
#include "tests/fakecuda/bench.h"

static const struct {
    const char *name;
    int abi;
} calls[] = {
#define X(name, abi, need) {"cu" #name, abi},
    CUDA_ENTRIES(X)
#undef X
};

START_TEST(is_there)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *fn = NULL;
    ck_assert_int_eq(cuGetProcAddress(calls[_i].name, &fn, calls[_i].abi, 0, &found), CUDA_SUCCESS);
    ck_assert_msg(fn && found == CU_GET_PROC_ADDRESS_SUCCESS, "%s of %d is not there",
                  calls[_i].name, calls[_i].abi);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fakecuda_calls");
    TCase *tcase = tcase_create("calls");
    tcase_add_loop_test(tcase, is_there, 0, (int)(sizeof calls / sizeof calls[0]));
    suite_add_tcase(suite, tcase);
    return bench_main(suite);
}

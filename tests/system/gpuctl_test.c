/* gpuctl as a user runs it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/system/harness.h"

static char out[DAEMON_OUTPUT];
static char err[DAEMON_OUTPUT];

/* A .npy file of floats, as NumPy writes it. */
static void npy_write(const char *path, const float *values, unsigned count)
{
    char file[1024] = "\x93NUMPY\x01";
    file[7] = 0;
    char header[119];
    int n = snprintf(header, sizeof header,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%u,), }", count);
    memset(header + n, ' ', sizeof header - (size_t)n);
    header[117] = '\n';
    file[8] = 118;
    memcpy(file + 10, header, 118);
    memcpy(file + 128, values, count * sizeof *values);
    file_write(path, file, 128 + count * sizeof *values);
}

START_TEST(run_with_files)
{
    struct daemon d;
    char in[160];
    char x[160];
    char save[160];
    char result[160];
    float values[] = {1, 2, 3, 4};
    char bytes[512];
    daemon_start(&d, "--backend", "sim", NULL);
    (void)snprintf(in, sizeof in, "%s/x.npy", d.dir);
    (void)snprintf(x, sizeof x, "x=in:@%s", in);
    (void)snprintf(result, sizeof result, "%s/y.npy", d.dir);
    (void)snprintf(save, sizeof save, "y=%s", result);
    npy_write(in, values, 4);
    int status = gpuctl(&d, out, err, "run", "scale", "--arg", "a=f32:2.5", "--arg", x, "--arg",
                        "y=out:f32:4", "--save", save, NULL);
    ck_assert_msg(status == 0, "%d: %s", status, err);
    FILE *f = fopen(result, "re");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    ck_assert_uint_gt(n, 16);
    ck_assert_mem_eq(bytes, "\x93NUMPY", 6);
    ck_assert_uint_eq((n - 4 * sizeof(float)) % 64, 0);
    memcpy(values, bytes + n - sizeof values, sizeof values);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_float_eq(values[i], 2.5f * (float)(i + 1));
    }
    daemon_stop(&d);
}
END_TEST

START_TEST(exit_codes)
{
    struct daemon d;
    daemon_start(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    ck_assert_int_eq(gpuctl(&d, out, err, "ping", NULL), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "no_such_kernel", NULL), 1);
    ck_assert_msg(strstr(err, "no_such_kernel") != NULL, "%s", err);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(gpuctl(&d, out, err, "no_such_command", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "run", NULL), 2);
    /* ten seconds of work in half a second */
    ck_assert_int_eq(gpuctl(&d, out, err, "run", "fill", "--arg", "value=f32:1", "--arg",
                            "x=out:f32:10000", "--timeout", "500", NULL),
                     124);
    daemon_stop(&d);
    ck_assert_int_eq(gpuctl(&d, out, err, "status", NULL), 3);
    ck_assert_str_ne(err, "");
}
END_TEST

START_TEST(json)
{
    static const char *const commands[] = {"status",  "devices", "pool",
                                           "kernels", "jobs",    "sessions"};
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    for (unsigned i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        json_error_t why;
        ck_assert_int_eq(gpuctl(&d, out, err, commands[i], "-o", "json", NULL), 0);
        json_t *value = json_loads(out, 0, &why);
        ck_assert_msg(value != NULL, "%s: %s: %s", commands[i], why.text, out);
        json_decref(value);
    }
    ck_assert_msg(strstr(out, "gpuctl") != NULL, "its own session is not there: %s", out);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpuctl");
    suite_add(suite, run_with_files);
    suite_add(suite, exit_codes);
    suite_add(suite, json);
    return system_main(suite);
}

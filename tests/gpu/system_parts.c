/* What a GPU's surroundings give: the management library, the toolkit's libraries, memory that
 * another process maps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/system.h"

/* Was it not asked yet, or does it not answer yet? */
static bool health_comes(const char *text)
{
    return strstr(text, "not answered yet") != NULL || strstr(text, "not asked yet") != NULL;
}

/* The values of gpud-monitor for the first device; it reads them every two seconds. */
START_TEST(health)
{
    static const struct {
        const char *column, *unit;
    } columns[] = {{"temperature", "C"},
                   {"power", "W"},
                   {"power_limit", "W"},
                   {"ecc_corrected", ""},
                   {"ecc_errors", ""}};
    struct daemon d;
    struct record r;
    char text[512] = "";
    gpud_client *c = gpu_begin(&d);
    uint64_t until = now_ns() + PATIENCE;
    record_begin(&r, "health");
    do {
        pause_ms(100);
        query_text(c, "devices", "0", "health", text, sizeof text);
    } while (health_comes(text) && now_ns() < until);
    if (strncmp(text, "not known", 9) == 0) {
        record_skipped(&r, text);
        daemon_end(&d, c);
        return;
    }
    for (unsigned i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        char cell[64];
        query_text(c, "devices", "0", columns[i].column, cell, sizeof cell);
        if (cell[0] == '\0') { /* a number, and no word why there is none */
            uint64_t value = query_value(c, "devices", "0", columns[i].column);
            record_figure(&r, columns[i].column, (double)value, columns[i].unit);
        }
    }
    char throttled[128];
    char recovery[128];
    query_text(c, "devices", "0", "throttled", throttled, sizeof throttled);
    query_text(c, "devices", "0", "recovery", recovery, sizeof recovery);
    record_note(&r, "%s; throttled: %s; recovery: %s", text, throttled, recovery);
    ck_assert(record_end(&r));
    daemon_end(&d, c);
}
END_TEST

/* Another program imports the descriptor and reads what a job wrote. */
START_TEST(exported)
{
    struct daemon d;
    struct record r;
    char said[256] = "";
    const char *argv[] = {"bin/example_export", NULL};
    gpud_client *c = gpu_begin(&d);
    record_begin(&r, "exported buffer");
    (void)setenv("GPUD_URL", d.url, 1);
    int status = run_program(argv, "export.out", "export.err");
    file_read("export.out", said, sizeof said);
    said[strcspn(said, "\n")] = '\0';
    if (status == 0 && strcmp(said, "its memory goes to CUDA") != 0) { /* it ends well without */
        record_skipped(&r, said[0] != '\0' ? said : "example_export did not say what it did");
    } else if (status == 0) {
        record_note(&r, "example_export maps what a job wrote by the driver API");
        ck_assert(record_end(&r));
    } else {
        char why[256] = "";
        file_read("export.err", why, sizeof why);
        record_failed(&r, why[0] != '\0' ? why : "example_export read something else");
    }
    daemon_end(&d, c);
    ck_assert_int_eq(status, 0);
}
END_TEST

#define SIDE 64u

static void served(gpud_client *c, const char *name, const gpud_arg *args, uint32_t count,
                   char *note, size_t size)
{
    gpud_job *job = NULL;
    gpud_job_times times = {.size = sizeof times};
    size_t used = strlen(note);
    ck_gpud_ok(gpud_launch(c, kernel_find(c, name), args, count, NULL, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_gpud_ok(gpud_job_timing(job, &times));
    gpud_job_free(job);
    (void)snprintf(note + used, size - used, "%s%s by %s", used > 0 ? ", " : "", name,
                   times.implementation);
}

/* The code that serves an operation here. The item "libraries" shows that its numbers are right. */
START_TEST(implementations)
{
    static float a[SIDE * SIDE], b[SIDE * SIDE], x[2 * SIDE], y[2 * SIDE];
    static uint32_t keys[SIDE];
    struct daemon d;
    struct record r;
    char note[256] = "";
    gpud_client *c = gpu_begin(&d);
    record_begin(&r, "implementations");
    for (unsigned i = 0; i < SIDE; i++) {
        a[i * SIDE + i] = 2; /* twice the identity */
        keys[i] = SIDE - i;
    }
    const gpud_shape square = gpud_shape_2d(GPUD_F32, SIDE, SIDE);
    const gpud_shape complex = gpud_shape_2d(GPUD_F32, SIDE, 2);
    const gpud_arg gemm[] = {gpud_host_shaped(a, square, GPUD_AS_KERNEL),
                             gpud_host_shaped(a, square, GPUD_AS_KERNEL),
                             gpud_host_shaped(b, square, GPUD_AS_KERNEL)};
    const gpud_arg fft[] = {gpud_host_shaped(x, complex, GPUD_AS_KERNEL),
                            gpud_host_shaped(y, complex, GPUD_AS_KERNEL)};
    const gpud_arg sort[] = {gpud_host(keys, SIDE, GPUD_U32)};
    const gpud_arg normal[] = {gpud_u64(1), gpud_f32(0), gpud_f32(1),
                               gpud_host(x, 2 * SIDE, GPUD_F32)};
    served(c, "gemm", gemm, 3, note, sizeof note);
    served(c, "fft", fft, 2, note, sizeof note);
    served(c, "sort", sort, 1, note, sizeof note);
    served(c, "random_normal", normal, 4, note, sizeof note);
    ck_assert_float_eq(b[0], 4);
    ck_assert_float_eq(b[1], 0);
    ck_assert_uint_eq(keys[0], 1);
    record_note(&r, "%s", note);
    ck_assert(record_end(&r));
    daemon_end(&d, c);
}
END_TEST

Suite *parts_suite(void)
{
    Suite *s = suite_create("parts");
    gpu_add(s, "health", health, 0);
    gpu_add(s, "exported buffer", exported, 0);
    gpu_add(s, "implementations", implementations, 0);
    return s;
}

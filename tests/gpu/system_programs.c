/*
 * Programs as one finds them (tests/gpu/cu), compiled by nvcc and by NVRTC when the bundle was
 * made: each binary's kernel must compute what the host does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/cu/programs.h"
#include "tests/gpu/system.h"

#define BINARY_MAX (1u << 20)

enum compiler { NVCC, NVRTC, COMPILERS };
static const char *const compilers[COMPILERS] = {"nvcc", "nvrtc"};

/* The bytes read back, by compiler and output. */
static unsigned char results[COMPILERS][PROGRAM_OUTPUTS][PROGRAM_BYTES];

struct outcome {
    unsigned loaded[COMPILERS], right[COMPILERS], same;
    char wrong[RECORD_TEXT]; /* "" = all is right */
    char other[RECORD_TEXT]; /* why a binary is not for this device, "" = it is */
};

static size_t binary_read(const struct program *p, const char *compiler, void *to)
{
    char path[512];
    const char *folder = getenv("GPU_PROGRAMS");
    (void)snprintf(path, sizeof path, "%s/%s.%s", folder != NULL ? folder : "cu", p->name,
                   compiler);
    FILE *f = fopen(path, "re");
    ck_assert_msg(f != NULL, "%s is not in the bundle", path);
    size_t size = fread(to, 1, BINARY_MAX, f);
    ck_assert_msg(size > 0 && size < BINARY_MAX && ferror(f) == 0, "%s cannot be read", path);
    (void)fclose(f);
    return size;
}

static void launch(gpud_client *c, gpud_kernel kernel, const struct program_run *r,
                   unsigned char to[][PROGRAM_BYTES])
{
    gpud_buffer buffer[PROGRAM_BUFFERS];
    gpud_arg args[PROGRAM_ARGS];
    for (unsigned i = 0; i < r->buffers; i++) {
        uint64_t count = r->bytes[i] / gpud_dtype_size(r->dtype[i]);
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(r->dtype[i], count), 0, NULL, &buffer[i]));
        ck_gpud_ok(gpud_write(c, buffer[i], r->dtype[i], 0, count, r->data[i], NULL));
    }
    for (unsigned i = 0; i < r->args; i++) {
        args[i] = r->arg[i].is_buffer ? gpud_slice(buffer[r->arg[i].buffer], 0, GPUD_REST)
                                      : r->arg[i].value;
    }
    int rc = gpud_call(c, kernel, args, r->args, &r->grid);
    ck_assert_msg(rc == 0, "%s: %s", r->name, gpud_last_error()->text);
    for (unsigned i = 0; i < r->outputs; i++) {
        unsigned b = r->output[i].buffer;
        ck_gpud_ok(gpud_read(c, buffer[b], r->dtype[b], 0, GPUD_REST, to[i], NULL));
    }
    for (unsigned i = 0; i < r->buffers; i++) {
        ck_gpud_ok(gpud_buffer_free(c, buffer[i]));
    }
}

static void note_wrong(struct outcome *o, const struct program *p, const char *compiler,
                       const struct program_output *out, const void *data, unsigned at)
{
    size_t used = strlen(o->wrong);
    (void)snprintf(o->wrong + used, sizeof o->wrong - used, "%s%s by %s: value %u is %g, not %g",
                   used > 0 ? "; " : "", p->name, compiler, at, program_value(out, data, at),
                   out->want[at]);
}

/* Is it right? The double computes nothing. */
static bool judge(struct outcome *o, const struct program *p, enum compiler by,
                  const struct program_run *r)
{
    bool right = !record_is_double();
    for (unsigned i = 0; i < r->outputs && !record_is_double(); i++) {
        unsigned at = 0;
        if (program_wrong(&r->output[i], results[by][i], &at) > 0) {
            note_wrong(o, p, compilers[by], &r->output[i], results[by][i], at);
            right = false;
        }
    }
    return right;
}

/* false: it is for another device. */
static bool run_one(gpud_client *c, struct outcome *o, const struct program *p, enum compiler by,
                    const struct program_run *r)
{
    static unsigned char binary[BINARY_MAX];
    gpud_module module = {0};
    gpud_kernel kernel = {0};
    size_t size = binary_read(p, compilers[by], binary);
    const gpud_module_options options = {.size = sizeof options, .file = p->name};
    int rc = gpud_module_load(c, GPUD_LANG_CUBIN, binary, size, &options, &module);
    if (rc == GPUD_ERR_UNSUPPORTED) {
        (void)snprintf(o->other, sizeof o->other, "%s", gpud_last_error()->text);
        return false;
    }
    ck_gpud_ok(rc);
    o->loaded[by]++;
    ck_gpud_ok(gpud_module_kernel_at(c, module, 0, &kernel));
    launch(c, kernel, r, results[by]);
    o->right[by] += judge(o, p, by, r);
    ck_gpud_ok(gpud_module_unload(c, module));
    return true;
}

static bool same(const struct program_run *r)
{
    bool all = true;
    for (unsigned i = 0; i < r->outputs; i++) {
        all =
            all && memcmp(results[NVCC][i], results[NVRTC][i], r->bytes[r->output[i].buffer]) == 0;
    }
    return all;
}

START_TEST(cuda_programs)
{
    static struct program_run r;
    static struct outcome o;
    struct daemon d;
    struct record record;
    gpud_client *c = gpu_begin(&d);
    record_begin(&record, "CUDA programs");
    for (unsigned i = 0; i < program_count && o.other[0] == '\0'; i++) {
        program_prepare(&programs[i], &r);
        bool ran =
            run_one(c, &o, &programs[i], NVCC, &r) && run_one(c, &o, &programs[i], NVRTC, &r);
        o.same += ran && !record_is_double() && same(&r);
    }
    record_note(&record, "by nvcc and by NVRTC, each against the host's arithmetic");
    record_figure(&record, "programs", program_count, "");
    if (o.other[0] != '\0') {
        record_skipped(&record, o.other);
    } else if (record_is_double()) {
        record_figure(&record, "launched by nvcc", o.loaded[NVCC], "");
        record_figure(&record, "launched by NVRTC", o.loaded[NVRTC], "");
        record_skipped(&record,
                       "they were loaded and launched; the double executes no device code");
    } else {
        record_figure(&record, "right by nvcc", o.right[NVCC], "");
        record_figure(&record, "right by NVRTC", o.right[NVRTC], "");
        record_figure(&record, "same bits by both", o.same, "");
        if (o.wrong[0] != '\0') {
            record_failed(&record, o.wrong);
        } else {
            ck_assert(record_end(&record));
        }
    }
    daemon_end(&d, c);
    ck_assert_msg(o.wrong[0] == '\0' || record_is_double(), "%s", o.wrong);
}
END_TEST

Suite *programs_suite(void)
{
    Suite *s = suite_create("programs");
    gpu_add(s, "CUDA programs", cuda_programs, 0);
    return s;
}

/* Random command lines and arguments: refused or taken, never a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/ctl/options.h"
#include "gpuctl/input/npy.h"
#include "gpuctl/input/spec.h"
#include "gpuctl/run/run.h"
#include "tests/unit/common/suite.h"

static uint64_t state;

static unsigned next(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % below);
}

static const char *const pieces[] = {
    "in",  "out",  "inout",     "scratch", ":",      "@",       "=",         "%",
    "f32", "i8",   "u64",       "f16",     "x",      "1024",    "-1",        "0x10",
    ",",   "1e",   "+raw",      "nan",     ".npy",   "-",       "--",        "arg",
    "job", "save", "name",      "raw",     "_a",     " ",       "\xff",      "99999999999999999999",
    "",    "3.5",  "global",    "repeat",  "--arg=", "--save=", "--global=", "--repeat",
    "-o",  "json", "--define=",
};
#define PIECES (sizeof pieces / sizeof pieces[0])

static void make_word(char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned n = 1 + next(7); n > 0; n--) {
        used += (size_t)snprintf(out + used, size - used, "%s", pieces[next(PIECES)]);
    }
}

START_TEST(random_arguments)
{
    unsigned taken = 0;
    state = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 60000; i++) {
        char word[256];
        make_word(word, sizeof word);
        char *exact = strdup(word); /* so that reading behind its end is seen */
        struct spec spec;
        struct spec_save save;
        struct ctl_err e;
        uint64_t size[3];
        ck_assert_ptr_nonnull(exact);
        if (spec_parse(exact, &spec, &e) == 0) {
            taken++;
            ck_assert(spec.kind >= SPEC_SCALAR && spec.kind <= SPEC_BYTES);
        } else {
            ck_assert_int_eq(e.code, CTL_USAGE);
        }
        (void)spec_save_parse(exact, &save, &e);
        (void)spec_grid(exact, size, &e);
        free(exact);
    }
    ck_assert_uint_gt(taken, 1000);
}
END_TEST

START_TEST(random_command_lines)
{
    unsigned taken = 0;
    state = 0x2545f4914f6cdd1du;
    for (int i = 0; i < 10000; i++) {
        char words[8][256];
        char *argv[8];
        int argc = (int)next(8);
        for (int w = 0; w < argc; w++) {
            make_word(words[w], sizeof words[w]);
            argv[w] = words[w];
        }
        struct ctl ctl = {0};
        struct options options;
        struct ctl_err e = {0};
        struct run_options parsed;
        options_init(&options, argc, argv);
        int rc = run_options_parse(&ctl, &options, &parsed, &e);
        taken += rc == 0;
        ck_assert(rc == 0 || e.code == rc);
    }
    ck_assert_uint_gt(taken, 100);
}
END_TEST

START_TEST(random_files)
{
    char header[NPY_WRITE_MAX];
    size_t size = npy_write_header(gpud_shape_2d(GPUD_F32, 1, 2), header);
    state = 88172645463325252u;
    for (int i = 0; i < 60000; i++) {
        unsigned char *file = malloc(size + 8);
        ck_assert_ptr_nonnull(file);
        memcpy(file, header, size);
        memset(file + size, 0, 8);
        for (unsigned n = 1 + next(4); n > 0; n--) {
            file[6 + next((unsigned)size - 6)] = (unsigned char)next(256);
        }
        struct npy npy;
        struct ctl_err e;
        if (npy_parse(file, size + 8, &npy, &e) == 0) {
            unsigned char *out = malloc(gpud_shape_bytes(npy.shape) + 1);
            ck_assert_ptr_nonnull(out);
            npy_copy(&npy, file, out);
            free(out);
        }
        free(file);
    }
}
END_TEST

SUITE_MAIN("random", random_arguments, random_command_lines, random_files)

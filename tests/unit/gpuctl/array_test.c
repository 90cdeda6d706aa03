#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuctl/base/file.h"
#include "gpuctl/input/array.h"
#include "tests/unit/common/suite.h"

static char dir[] = "/tmp/gpuctl-test-XXXXXX";
static char path[64];

static void make_dir(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a.npy", dir);
}

static void remove_dir(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left there */
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
}

static int load(const char *text, struct array *ret_array, struct ctl_err *e)
{
    struct spec spec;
    ck_assert_int_eq(spec_parse(text, &spec, e), 0);
    return array_load(&spec, (struct file_limit){4096, 4096}, ret_array, e);
}

static int save(const struct array *array, const char *file, bool raw, struct ctl_err *e)
{
    struct save saving = {0};
    int rc = save_begin(file, &saving, e);
    return rc == 0 ? array_save(array, &saving, raw, e) : rc;
}

START_TEST(arrays_go_to_files_and_back)
{
    struct array a, b;
    struct ctl_err e = {0};
    char text[128];
    make_dir();
    ck_assert_int_eq(load("in:i32:2x3=1,-2,3,4,5,6", &a, &e), 0);
    ck_assert_int_eq(save(&a, path, false, &e), 0);
    snprintf(text, sizeof text, "in:@%s", path);
    ck_assert_int_eq(load(text, &b, &e), 0);
    ck_assert_uint_eq(b.shape.ndim, 2);
    ck_assert_mem_eq(a.data, b.data, 24);
    array_finish(&b);
    snprintf(text, sizeof text, "in:i32:6@%s", path);
    ck_assert_int_eq(load(text, &b, &e), 0);
    ck_assert_uint_eq(b.shape.ndim, 1);
    array_finish(&b);
    snprintf(text, sizeof text, "in:i32:7@%s", path);
    ck_assert_int_eq(load(text, &b, &e), GPUD_ERR_ARG_SHAPE);
    snprintf(text, sizeof text, "in:f32@%s", path);
    ck_assert_int_eq(load(text, &b, &e), GPUD_ERR_ARG_TYPE);
    array_finish(&a);
    remove_dir();
}
END_TEST

START_TEST(raw_files_have_bytes_only)
{
    struct array a, b;
    struct ctl_err e = {0};
    char text[128];
    struct stat st;
    make_dir();
    ck_assert_int_eq(load("in:u16=1,2,3", &a, &e), 0);
    ck_assert_int_eq(save(&a, path, true, &e), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 6);
    snprintf(text, sizeof text, "in:u16+raw@%s", path);
    ck_assert_int_eq(load(text, &b, &e), 0);
    ck_assert_uint_eq(b.shape.dim[0], 3);
    ck_assert_mem_eq(a.data, b.data, 6);
    array_finish(&b);
    snprintf(text, sizeof text, "in:u32+raw@%s", path);
    ck_assert_int_eq(load(text, &b, &e), GPUD_ERR_ARG_SHAPE);
    snprintf(text, sizeof text, "in:u8+raw:3x3@%s", path);
    ck_assert_int_eq(load(text, &b, &e), GPUD_ERR_ARG_SHAPE);
    array_finish(&a);
    remove_dir();
}
END_TEST

START_TEST(what_cannot_be_read_says_so)
{
    struct array a;
    struct ctl_err e = {0};
    ck_assert_int_eq(load("in:@/nonexistent/x.npy", &a, &e), GPUD_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "/nonexistent/x.npy"));
    ck_assert_int_eq(load("in:@/", &a, &e), GPUD_ERR_IO);
    ck_assert_int_eq(load("in:@/dev/null", &a, &e), GPUD_ERR_INVALID);
    ck_assert_int_eq(load("in:f32=1,x", &a, &e), CTL_USAGE);
    ck_assert_int_eq(load("in:f32:3=1,2", &a, &e), GPUD_ERR_ARG_SHAPE);
    ck_assert_int_eq(load("out:u8:4611686018427387904", &a, &e), GPUD_ERR_LIMIT);
}
END_TEST

/* The folder's entries but for . and .. */
static unsigned entries(void)
{
    unsigned count = 0;
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 ? 1 : 0;
    }
    closedir(d);
    return count;
}

static int begin(const char *file)
{
    struct save saving = {0};
    struct ctl_err e = {0};
    int rc = save_begin(file, &saving, &e);
    ck_assert(rc == 0 || strstr(e.text, file) != NULL);
    save_finish(&saving);
    return rc;
}

START_TEST(what_cannot_be_saved_is_known_before)
{
    char link[64];
    make_dir();
    snprintf(path, sizeof path, "%s", dir);
    ck_assert_int_eq(begin(path), GPUD_ERR_IO); /* a directory cannot be replaced */
    snprintf(path, sizeof path, "%s/missing/a.npy", dir);
    ck_assert_int_eq(begin(path), GPUD_ERR_NOT_FOUND);
    ck_assert_int_ne(begin("/proc/a.npy"), 0);
    ck_assert_int_ne(begin("/proc/self/a.npy"), 0);
    ck_assert_int_eq(begin("/dev/null"), GPUD_ERR_IO);
    ck_assert_int_eq(begin("/dev/full"), GPUD_ERR_IO);
    snprintf(link, sizeof link, "%s/link", dir);
    ck_assert_int_eq(symlink("nowhere", link), 0);
    ck_assert_int_eq(begin(link), GPUD_ERR_NOT_FOUND);
    ck_assert_int_eq(unlink(link), 0);
    snprintf(path, sizeof path, "%s/new.npy", dir);
    ck_assert_int_eq(begin(path), 0);
    ck_assert_uint_eq(entries(), 0);
    remove_dir();
}
END_TEST

/* What a full disk does, RLIMIT_FSIZE does too. */
START_TEST(a_failed_save_leaves_nothing)
{
    struct array a = {.shape = gpud_shape_1d(GPUD_U8, 8192)};
    struct ctl_err e = {0};
    struct save saving = {0};
    struct rlimit before, limit;
    make_dir();
    a.data = calloc(1, 8192);
    ck_assert_int_eq(save_begin(path, &saving, &e), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    void (*kept)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = array_save(&a, &saving, false, &e);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, kept);
    ck_assert_int_eq(rc, GPUD_ERR_IO);
    ck_assert_msg(strstr(e.text, path) != NULL, "%s", e.text);
    ck_assert_uint_eq(entries(), 0);
    array_finish(&a);
    remove_dir();
}
END_TEST

START_TEST(a_link_stays_one)
{
    struct array a;
    struct ctl_err e = {0};
    struct stat st;
    char link[64];
    make_dir();
    ck_assert_int_eq(load("in:u8=1", &a, &e), 0);
    ck_assert_int_eq(save(&a, path, true, &e), 0);
    snprintf(link, sizeof link, "%s/link", dir);
    ck_assert_int_eq(symlink("a.npy", link), 0);
    ck_assert_int_eq(save(&a, link, false, &e), 0);
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_gt(st.st_size, 1);
    ck_assert_uint_eq(entries(), 2);
    ck_assert_int_eq(unlink(link), 0);
    array_finish(&a);
    remove_dir();
}
END_TEST

static void *feed(void *data)
{
    static const char zeros[512];
    int fd = *(int *)data;
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    close(fd);
    return NULL;
}

/* Pipes without an end, devices, files of /proc, large files. */
START_TEST(endless_input_has_an_end)
{
    struct array a;
    struct ctl_err e = {0};
    char text[128];
    int ends[2];
    pthread_t thread;
    make_dir();
    ck_assert_int_eq(load("in:@/dev/zero", &a, &e), GPUD_ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "4096") != NULL && strstr(e.text, "--max-input") != NULL, "%s",
                  e.text);
    ck_assert_int_eq(load("in:u8+raw@/dev/zero", &a, &e), GPUD_ERR_LIMIT);
    ck_assert_int_eq(load("in:u8+raw:16@/dev/zero", &a, &e), GPUD_ERR_ARG_SHAPE);
    ck_assert_int_eq(load("in:@/proc/self/status", &a, &e), GPUD_ERR_INVALID);
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, feed, &ends[1]), 0);
    snprintf(text, sizeof text, "in:u8+raw@/dev/fd/%d", ends[0]);
    ck_assert_int_eq(load(text, &a, &e), GPUD_ERR_LIMIT);
    close(ends[0]);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, (off_t)1 << 40), 0); /* reading it would take for ever */
    snprintf(text, sizeof text, "in:u8+raw@%s", path);
    ck_assert_int_eq(load(text, &a, &e), GPUD_ERR_LIMIT);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(load(text, &a, &e), 0);
    ck_assert_uint_eq(a.shape.dim[0], 4096);
    array_finish(&a);
    close(fd);
    remove_dir();
}
END_TEST

START_TEST(inout_starts_as_zeros)
{
    static const uint8_t zeros[16];
    struct array a;
    struct ctl_err e = {0};
    ck_assert_int_eq(load("inout:f32:4", &a, &e), 0);
    ck_assert_mem_eq(a.data, zeros, 16);
    array_finish(&a);
}
END_TEST

START_TEST(elements_as_text)
{
    struct array a;
    struct ctl_err e = {0};
    char out[32];
    ck_assert_int_eq(load("in:i8=-1,0,127", &a, &e), 0);
    array_text(&a, 8, out, sizeof out);
    ck_assert_str_eq(out, "-1 0 127");
    array_text(&a, 2, out, sizeof out);
    ck_assert_str_eq(out, "-1 0 ...");
    array_text(&a, 8, out, 5);
    ck_assert_uint_lt(strlen(out), 5);
    array_finish(&a);
    ck_assert_int_eq(load("in:f16=0.5,-2", &a, &e), 0);
    array_text(&a, 8, out, sizeof out);
    ck_assert_str_eq(out, "0.5 -2");
    array_finish(&a);
    ck_assert_int_eq(load("in:u64=18446744073709551615", &a, &e), 0);
    array_text(&a, 8, out, sizeof out);
    ck_assert_str_eq(out, "18446744073709551615");
    array_finish(&a);
}
END_TEST

SUITE_MAIN("array", arrays_go_to_files_and_back, raw_files_have_bytes_only,
           what_cannot_be_read_says_so, what_cannot_be_saved_is_known_before,
           a_failed_save_leaves_nothing, a_link_stays_one, endless_input_has_an_end,
           inout_starts_as_zeros, elements_as_text)

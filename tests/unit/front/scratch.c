#include "tests/unit/front/scratch.h"

#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scratch_make(char ret_dir[SCRATCH_PATH])
{
    (void)snprintf(ret_dir, SCRATCH_PATH, "/tmp/gpud-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(ret_dir));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void scratch_remove(const char *dir)
{
    ck_assert_int_eq(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

const char *scratch_path(const char *dir, const char *name)
{
    static char paths[4][SCRATCH_PATH + 128];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

void scratch_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

int descriptors_open(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

void loop_until(uv_loop_t *loop, const bool *flag)
{
    /* UV_RUN_ONCE would wait after a timer's callback has set the flag */
    while (uv_run(loop, UV_RUN_NOWAIT) != 0 && !*flag) {
        struct pollfd p = {.fd = uv_backend_fd(loop), .events = POLLIN};
        (void)poll(&p, 1, uv_backend_timeout(loop));
    }
    ck_assert(*flag);
}

void loop_finish(uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(loop), 0);
}

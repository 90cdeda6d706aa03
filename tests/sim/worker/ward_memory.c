/*
 * Memory of the process that plays worlds, where most of its time would go: pages that come, are
 * cleared and go again. Staging memory lasts for all worlds, and front and worker have one mapping
 * of it. Large tables of the worker are new pages, of which it touches few.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/sim/worker/ward_front.h"

#define TABLE_BYTES ((size_t)256 << 10)
#define TABLES_MOST 64u
#define PAGE_BYTES  4096u

static uint64_t heap_blocks;

/* ---- the heap -------------------------------------------------------------------------------- */

static struct {
    void *data; /* NULL: free */
    size_t bytes;
} tables[TABLES_MOST];

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t size);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t size);

static unsigned table_at(const void *data)
{
    unsigned i = (uintptr_t)data % PAGE_BYTES == 0 ? 0 : TABLES_MOST;
    while (i < TABLES_MOST && tables[i].data != data) {
        i++;
    }
    return i;
}

static void *table_make(size_t bytes)
{
    unsigned i = table_at(NULL);
    if (bytes < TABLE_BYTES || i == TABLES_MOST) {
        return NULL;
    }
    void *data =
        __real_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tables[i].data = data != MAP_FAILED ? data : NULL;
    tables[i].bytes = bytes;
    return tables[i].data;
}

void *__wrap_malloc(size_t size)
{
    void *p = __real_malloc(size);
    heap_blocks += p != NULL;
    return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t bytes = 0;
    void *p = __builtin_mul_overflow(count, size, &bytes) ? NULL : table_make(bytes);
    p = p != NULL ? p : __real_calloc(count, size);
    heap_blocks += p != NULL;
    return p;
}

/* Of tables the worker enlarges none. */
void *__wrap_realloc(void *p, size_t size)
{
    if (p != NULL && table_at(p) < TABLES_MOST) {
        abort();
    }
    void *q = __real_realloc(p, size);
    heap_blocks += p == NULL && q != NULL;
    return q;
}

void __wrap_free(void *p)
{
    unsigned i = p != NULL ? table_at(p) : TABLES_MOST;
    heap_blocks -= p != NULL;
    if (i < TABLES_MOST) {
        (void)__real_munmap(p, tables[i].bytes);
        tables[i].data = NULL;
    } else {
        __real_free(p);
    }
}

uint64_t ward_heap_blocks(void)
{
    return heap_blocks;
}

/* ---- staging memory -------------------------------------------------------------------------- */

static struct {
    struct memfd input, output;
    struct stat is_input, is_output;
} staging = {.input = {.fd = -1}, .output = {.fd = -1}};

int ward_staging(struct memfd *ret_input, struct memfd *ret_output, struct err *e)
{
    int rc = 0;
    if (staging.input.fd < 0) {
        rc = memfd_create_sealed("in", WARD_STAGE, &staging.input, e);
        rc = rc == 0 ? memfd_create_sealed("out", WARD_STAGE, &staging.output, e) : rc;
        if (rc != 0 || fstat(staging.input.fd, &staging.is_input) != 0 ||
            fstat(staging.output.fd, &staging.is_output) != 0) {
            return rc;
        }
    }
    *ret_input = staging.input;
    *ret_output = staging.output;
    return rc;
}

void ward_staging_clear(uint64_t input, uint64_t output)
{
    memset(staging.input.data, 0, input);
    memset(staging.output.data, 0, output);
}

static bool is(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    struct stat st;
    if (fd >= 0 && staging.output.fd >= 0 && fstat(fd, &st) == 0) {
        if (is(&st, &staging.is_input)) {
            return staging.input.data;
        }
        if (is(&st, &staging.is_output)) {
            return staging.output.data;
        }
    }
    return __real_mmap(at, size, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t size)
{
    bool kept = at == staging.input.data || at == staging.output.data;
    return kept ? 0 : __real_munmap(at, size);
}

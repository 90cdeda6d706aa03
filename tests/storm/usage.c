#include "tests/storm/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

/* A launcher keeps the lock of each folder that a worker of it has had: as many as it had workers
 * at once, those that are ending included. */
static bool is_lock(const char *folder, const char *number)
{
    char path[PATH_MAX];
    char target[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", folder, number);
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    return n > 5 && strcmp(target + n - 5, ".lock") == 0 && strstr(target, "workers/") != NULL;
}

/* Its descriptors without those locks. */
struct usage usage_of(pid_t pid)
{
    struct usage u = {0};
    char path[64];
    char line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    const struct dirent *entry = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        u.descriptors += entry->d_name[0] != '.' && !is_lock(path, entry->d_name);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "Anonymous:", 10) == 0) {
            u.pages = strtoull(line + 10, NULL, 10) * 1024;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return u;
}

struct heap_page *heap_begin(const char *folder)
{
    /* what is freed goes back to the kernel at once, so that heap in use can be seen from outside
     */
    (void)setenv("MALLOC_ARENA_MAX", "1", 1);
    (void)setenv("MALLOC_TRIM_THRESHOLD_", "65536", 1);
    (void)setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
    /* what threads keep in caches of their own would count as in use */
    (void)setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
#ifdef STORM_HEAP
    static char path[2 * DAEMON_PATH];
    (void)snprintf(path, sizeof path, "%s/heap", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, sizeof(struct heap_page)), 0);
    void *page = mmap(NULL, sizeof(struct heap_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    (void)close(fd);
    (void)setenv(HEAP_PAGE, path, 1);
    (void)setenv("LD_PRELOAD", STORM_HEAP, 1);
    return page;
#else
    (void)folder;
    return NULL;
#endif
}

uint64_t heap_of_front(struct heap_page *page)
{
    if (page == NULL) {
        return 0;
    }
    unsigned asked = atomic_fetch_add(&page->asked, 1) + 1;
    ck_until(atomic_load(&page->answered) == asked);
    return page->bytes;
}

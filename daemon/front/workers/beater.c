#include "daemon/front/workers/beater.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "daemon/front/clients/processes.h"

#define LINE_BYTES 1024

struct beater {
    int fd; /* owned */
};

/* Is the open file the state of a thread of the process? Another file of /proc could block its
 * reader. The path says it, in whatever mount of /proc the worker has opened it. */
static bool is_thread_of(int fd, pid_t pid)
{
    char link[64];
    char path[PATH_MAX];
    char prefix[64];
    struct statfs fs;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC
                    ? readlink(link, path, sizeof path - 1)
                    : -1;
    path[n > 0 ? n : 0] = '\0';
    (void)snprintf(prefix, sizeof prefix, "/%d/task/", (int)pid);
    const char *at = strstr(path, prefix);
    at = at != NULL ? at + strlen(prefix) : "";
    size_t digits = strspn(at, "0123456789");
    return digits > 0 && strcmp(at + digits, "/stat") == 0;
}

struct beater *beater_create(int fd, pid_t pid)
{
    struct beater *b = fd >= 0 && is_thread_of(fd, pid) ? malloc(sizeof *b) : NULL;
    if (b == NULL) {
        descriptor_close(&fd);
        return NULL;
    }
    b->fd = fd;
    return b;
}

void beater_destroy(struct beater *b)
{
    if (b != NULL) {
        descriptor_close(&b->fd);
        free(b);
    }
}

bool beater_parse(const char *line, uint64_t tick_ns, struct thread_look *ret_look)
{
    const char *state = process_field(line, PROCESS_STATE);
    const char *user = process_field(line, PROCESS_USER_TIME);
    const char *system = process_field(line, PROCESS_SYSTEM_TIME);
    if (system == NULL) {
        return false;
    }
    uint64_t ticks = strtoull(user, NULL, 10) + strtoull(system, NULL, 10);
    *ret_look = (struct thread_look){
        .state = *state, .lack = silence_lack(*state), .ran_ns = ticks * tick_ns};
    return true;
}

bool beater_look(const struct device *d, struct thread_look *ret_look)
{
    char line[LINE_BYTES];
    long hertz = sysconf(_SC_CLK_TCK);
    ssize_t n = d->beater != NULL ? pread(d->beater->fd, line, sizeof line - 1, 0) : -1;
    if (n <= 0 || hertz <= 0) {
        return false;
    }
    line[n] = '\0';
    return beater_parse(line, NS_PER_S / (uint64_t)hertz, ret_look);
}

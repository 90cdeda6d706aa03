#include "tests/storm/ledger.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct ledger *ledger_create(void)
{
    void *p = mmap(NULL, sizeof(struct ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void ledger_break(struct ledger *l, enum breach breach, const char *format, ...)
{
    va_list list;
    atomic_fetch_add(&l->breaches[breach], 1);
    uint64_t at = atomic_fetch_add(&l->broken_count, 1);
    char text[BROKEN_TEXT - 64];
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (at < BROKEN_MAX) {
        (void)snprintf(l->broken[at], BROKEN_TEXT, "%s (process %d): %s", breach_name(breach),
                       (int)getpid(), text);
        (void)fprintf(stderr, "storm: broken: %s\n", l->broken[at]);
        ledger_log(l, "broken: %s", l->broken[at]);
    }
}

void ledger_log(const struct ledger *l, const char *format, ...)
{
    char line[BROKEN_TEXT + 64];
    struct timespec t;
    va_list list;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    int n = snprintf(line, sizeof line, "storm: %lld.%03ld: ", (long long)t.tv_sec,
                     t.tv_nsec / 1000000);
    va_start(list, format);
    (void)vsnprintf(line + n, sizeof line - (size_t)n - 1, format, list);
    va_end(list);
    (void)strcat(line, "\n");
    int fd = open(l->log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, line, strlen(line));
        (void)close(fd);
    }
}

#define X(name, text) text,
const char *deed_name(enum deed deed)
{
    static const char *const names[] = {DEEDS(X)};
    return names[deed];
}

const char *breach_name(enum breach breach)
{
    static const char *const names[] = {BREACHES(X)};
    return names[breach];
}

const char *victim_name(enum victim victim)
{
    static const char *const names[] = {VICTIMS(X)};
    return names[victim];
}
#undef X

#include "daemon/front/devices/hold_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "proto/health.h"

static void add(struct hold_file *h, const char *pin, uint32_t recovery)
{
    if (h->count < HOLDS_MAX && strlen(pin) < sizeof h->item[0].pin) {
        struct hold *d = &h->item[h->count++];
        (void)snprintf(d->pin, sizeof d->pin, "%s", pin);
        d->recovery = recovery;
    }
}

/* "PIN NUMBER\n"; other lines are ignored. */
static void add_line(struct hold_file *h, char *line)
{
    char *number = strchr(line, ' ');
    char *end = NULL;
    if (number == NULL) {
        return;
    }
    *number++ = '\0';
    errno = 0;
    unsigned long recovery = strtoul(number, &end, 10);
    if (errno == 0 && end != number && *end == '\n' && recovery <= UINT32_MAX) {
        add(h, line, (uint32_t)recovery);
    }
}

static bool path_of(const char *runtime_dir, const char *name, char out[PATH_MAX])
{
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", runtime_dir, name) < PATH_MAX;
}

static void read_once(struct hold_file *h, const char *runtime_dir)
{
    char path[PATH_MAX];
    char line[128];
    if (h->read) {
        return;
    }
    h->read = true;
    FILE *file = path_of(runtime_dir, "held", path) ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        add_line(h, line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* Writes another file and renames it, so a reader sees either list whole. */
static bool save(const struct hold_file *h, const char *path, const char *next)
{
    FILE *file = fopen(next, "we");
    if (file == NULL) {
        return false;
    }
    bool ok = true;
    for (unsigned i = 0; i < h->count; i++) {
        ok = fprintf(file, "%s %" PRIu32 "\n", h->item[i].pin, h->item[i].recovery) > 0 && ok;
    }
    ok = fclose(file) == 0 && ok;
    return ok && rename(next, path) == 0;
}

static struct hold *find(struct hold_file *h, const char *pin)
{
    for (unsigned i = 0; i < h->count; i++) {
        if (strcmp(h->item[i].pin, pin) == 0) {
            return &h->item[i];
        }
    }
    return NULL;
}

uint32_t hold_file_find(struct hold_file *h, const char *runtime_dir, const char *pin)
{
    read_once(h, runtime_dir);
    const struct hold *d = find(h, pin);
    return d != NULL ? d->recovery : HEALTH_RECOVERY_NONE;
}

void hold_file_set(struct hold_file *h, const char *runtime_dir, const char *pin, uint32_t recovery)
{
    char path[PATH_MAX];
    char next[PATH_MAX];
    read_once(h, runtime_dir);
    struct hold *d = find(h, pin);
    if ((d != NULL ? d->recovery : HEALTH_RECOVERY_NONE) == recovery) {
        return;
    }
    if (d == NULL) {
        add(h, pin, recovery);
    } else if (recovery != HEALTH_RECOVERY_NONE) {
        d->recovery = recovery;
    } else {
        *d = h->item[--h->count];
    }
    if (!path_of(runtime_dir, "held", path) || !path_of(runtime_dir, "held.new", next)) {
        return;
    }
    bool ok = h->count == 0 ? unlink(path) == 0 || errno == ENOENT : save(h, path, next);
    if (!ok) {
        log_say(
            LOG_FILE_BAD,
            "hold file %s: %s: after a restart, held devices get jobs until their driver answers",
            path, strerror(errno));
    }
}

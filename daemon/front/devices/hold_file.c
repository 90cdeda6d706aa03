#include "daemon/front/devices/hold_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/front/model/device.h"
#include "proto/health.h"

#define DRAINED        "drained" /* begins a line of a drained device; no pin is this */
#define KNOWN          "known"   /* begins a line of a device that has a UUID */
#define LINE_MAX_BYTES 256u

int hold_file_create(struct hold_file **ret_file, struct err *e)
{
    struct hold_file *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for the hold file");
    }
    *ret_file = h;
    return 0;
}

void hold_file_destroy(struct hold_file *h)
{
    free(h);
}

static void add(struct hold_file *h, const char *pin, uint32_t recovery)
{
    if (h->count < HOLDS_MAX && strlen(pin) < sizeof h->item[0].pin) {
        struct hold *d = &h->item[h->count++];
        (void)snprintf(d->pin, sizeof d->pin, "%s", pin);
        d->recovery = recovery;
    }
}

/* The next word of a line as a number. */
static bool take_number(char **rest, uint64_t most, uint64_t *ret_number)
{
    const char *word = strtok_r(NULL, " ", rest);
    char *end = NULL;
    errno = 0;
    *ret_number = word != NULL ? strtoull(word, &end, 10) : 0;
    return word != NULL && errno == 0 && end != word && *end == '\0' && *ret_number <= most;
}

static bool take_word(char **rest, char *out, size_t size)
{
    const char *word = strtok_r(NULL, " ", rest);
    return word != NULL && (size_t)snprintf(out, size, "%s", word) < size;
}

/* A line of a drained device. false: it is of another form. */
static bool add_drained(struct hold_file *h, const char *line)
{
    struct hold_drain d = {.number = 0};
    uint64_t number = 0;
    uint64_t siblings = 0;
    uint64_t wish = 0;
    char copy[LINE_MAX_BYTES];
    char *rest = NULL;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    const char *first = strtok_r(copy, " ", &rest);
    if (first == NULL || strcmp(first, DRAINED) != 0) {
        return false;
    }
    bool good = take_word(&rest, d.backend, sizeof d.backend) &&
                take_number(&rest, UINT32_MAX, &number) &&
                take_number(&rest, UINT32_MAX, &siblings) &&
                take_number(&rest, DRAIN_FINISHES, &wish) && wish >= DRAIN_HOLDS &&
                take_number(&rest, UINT64_MAX, &d.since_s) && take_word(&rest, d.by, sizeof d.by);
    if (good && h->drained_count < HOLDS_MAX) {
        d.number = (unsigned)number;
        d.siblings = (unsigned)siblings;
        d.wish = (unsigned)wish;
        (void)snprintf(d.pin, sizeof d.pin, "%s", rest != NULL ? rest : "");
        h->drained[h->drained_count++] = d;
    }
    return true;
}

/* A line of a known device. false: it is of another form. */
static bool add_known(struct hold_file *h, const char *line)
{
    struct hold_known k = {.number = 0};
    uint64_t number = 0;
    char copy[LINE_MAX_BYTES];
    char *rest = NULL;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\n"), line);
    const char *first = strtok_r(copy, " ", &rest);
    if (first == NULL || strcmp(first, KNOWN) != 0) {
        return false;
    }
    if (take_word(&rest, k.backend, sizeof k.backend) && take_number(&rest, UINT32_MAX, &number) &&
        take_word(&rest, k.pin, sizeof k.pin) && h->known_count < HOLDS_MAX) {
        k.number = (unsigned)number;
        h->known[h->known_count++] = k;
    }
    return true;
}

/* Lines of another form are ignored. */
static void add_line(struct hold_file *h, char *line)
{
    char *number = strchr(line, ' ');
    char *end = NULL;
    if (number == NULL || add_drained(h, line) || add_known(h, line)) {
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
    char line[LINE_MAX_BYTES];
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
    for (unsigned i = 0; i < h->drained_count; i++) {
        const struct hold_drain *d = &h->drained[i];
        ok = fprintf(file, DRAINED " %s %u %u %u %" PRIu64 " %s %s\n", d->backend, d->number,
                     d->siblings, d->wish, d->since_s, d->by, d->pin) > 0 &&
             ok;
    }
    for (unsigned i = 0; i < (h->drained_count > 0 ? h->known_count : 0); i++) {
        const struct hold_known *k = &h->known[i];
        ok = fprintf(file, KNOWN " %s %u %s\n", k->backend, k->number, k->pin) > 0 && ok;
    }
    ok = fclose(file) == 0 && ok;
    return ok && rename(next, path) == 0;
}

static void write_all(const struct hold_file *h, const char *runtime_dir)
{
    char path[PATH_MAX];
    char next[PATH_MAX];
    if (!path_of(runtime_dir, "held", path) || !path_of(runtime_dir, "held.new", next)) {
        return;
    }
    bool empty = h->count + h->drained_count == 0;
    bool ok = empty ? unlink(path) == 0 || errno == ENOENT : save(h, path, next);
    if (!ok) {
        log_say(LOG_FILE_BAD,
                "hold file %s: %s: after a restart, held devices get jobs until their driver "
                "answers, and drained ones are opened",
                path, strerror(errno));
    }
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
    write_all(h, runtime_dir);
}

/* ---- drained devices ------------------------------------------------------------------------- */

static bool is_of(const struct hold_drain *x, const char *backend, unsigned number, const char *pin)
{
    bool pinned = pin[0] != '\0' && x->pin[0] != '\0';
    return pinned ? strcmp(x->pin, pin) == 0
                  : x->number == number && strcmp(x->backend, backend) == 0;
}

static struct hold_drain *find_drained(struct hold_file *h, const char *backend, unsigned number,
                                       const char *pin)
{
    for (unsigned i = 0; i < h->drained_count; i++) {
        if (is_of(&h->drained[i], backend, number, pin)) {
            return &h->drained[i];
        }
    }
    return NULL;
}

const struct hold_drain *hold_file_drained(struct hold_file *h, const char *runtime_dir,
                                           const char *backend, unsigned number, const char *pin)
{
    read_once(h, runtime_dir);
    return find_drained(h, backend, number, pin);
}

const struct hold_known *hold_file_known(struct hold_file *h, const char *runtime_dir, unsigned at)
{
    read_once(h, runtime_dir);
    return h->drained_count > 0 && at < h->known_count ? &h->known[at] : NULL;
}

void hold_file_know(struct hold_file *h, const char *runtime_dir, const struct hold_known *known,
                    unsigned count)
{
    read_once(h, runtime_dir);
    h->known_count = count < HOLDS_MAX ? count : HOLDS_MAX;
    memcpy(h->known, known, h->known_count * sizeof known[0]);
}

void hold_file_drain(struct hold_file *h, const char *runtime_dir, const struct hold_drain *entry)
{
    read_once(h, runtime_dir);
    struct hold_drain *d = find_drained(h, entry->backend, entry->number, entry->pin);
    if (d == NULL && h->drained_count < HOLDS_MAX) {
        d = &h->drained[h->drained_count++];
    }
    if (d != NULL) {
        *d = *entry;
        write_all(h, runtime_dir);
    }
}

void hold_file_resume(struct hold_file *h, const char *runtime_dir, const char *backend,
                      unsigned number, const char *pin)
{
    read_once(h, runtime_dir);
    struct hold_drain *d = find_drained(h, backend, number, pin);
    if (d != NULL) {
        *d = h->drained[--h->drained_count];
        write_all(h, runtime_dir);
    }
}

#include "daemon/front/tenants/forecast_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

#define FIRST_LINE "gpud-forecasts 1\n"
#define END_WORD   "end "
#define LINE_BYTES 160

struct kept {
    uint64_t tenant; /* its key; 0: given */
    struct forecast_entry entry;
};

struct forecast_file {
    struct kept kept[FORECAST_FILE_MAX];
    unsigned count;
};

static bool path_of(const char *dir, const char *name, char out[PATH_MAX])
{
    return dir[0] != '\0' && (size_t)snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The number that comes next, and what follows it: `then`. */
static bool read_whole(const char **at, int base, char then, uint64_t *ret_number)
{
    char *end = NULL;
    errno = 0;
    *ret_number = strtoull(*at, &end, base);
    bool good = end != *at && errno == 0 && *end == then && **at != '-' && **at != '+';
    *at = good ? end + 1 : *at;
    return good;
}

static bool read_part(const char **at, float *ret_number)
{
    char *end = NULL;
    *ret_number = strtof(*at, &end);
    bool good = end != *at && *end == ' ';
    *at = good ? end + 1 : *at;
    return good;
}

static bool read_entry(const char *line, struct kept *ret_kept)
{
    struct kept *k = ret_kept;
    uint64_t count = 0;
    *k = (struct kept){0};
    bool good = read_whole(&line, 16, ' ', &k->tenant) &&
                read_whole(&line, 16, ' ', &k->entry.key) && read_part(&line, &k->entry.mean_ns) &&
                read_part(&line, &k->entry.drift_ns) && read_whole(&line, 10, '\n', &count) &&
                count <= UINT32_MAX;
    k->entry.count = (uint32_t)count;
    return good;
}

/* NULL: it is whole. */
static const char *read_lines(FILE *in, struct forecast_file *file)
{
    char line[LINE_BYTES];
    if (fgets(line, sizeof line, in) == NULL || strcmp(line, FIRST_LINE) != 0) {
        return "it is of another version";
    }
    while (fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, END_WORD, strlen(END_WORD)) == 0) {
            const char *at = line + strlen(END_WORD);
            uint64_t count = 0;
            bool whole = read_whole(&at, 10, '\n', &count) && count == file->count;
            return whole && fgetc(in) == EOF ? NULL : "it is damaged";
        }
        if (file->count == FORECAST_FILE_MAX || !read_entry(line, &file->kept[file->count])) {
            return "it is damaged";
        }
        file->count++;
    }
    return "its end is missing";
}

/* Opens only what this daemon wrote. NULL: *ret_why has the reason; NULL: there is no file. */
static FILE *open_own(const char *path, const char **ret_why)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    *ret_why = fd >= 0 || errno == ENOENT ? NULL : strerror(errno);
    if (fd < 0) {
        return NULL;
    }
    bool own = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
               (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    FILE *in = own ? fdopen(fd, "r") : NULL;
    if (in == NULL) {
        *ret_why = own ? "no memory" : "it is not a file that only the daemon's user can write";
        (void)close(fd);
    }
    return in;
}

void forecast_file_read(const char *dir, struct forecast_file **ret_file)
{
    char path[PATH_MAX];
    const char *why = NULL;
    *ret_file = NULL;
    FILE *in = path_of(dir, "forecasts", path) ? open_own(path, &why) : NULL;
    struct forecast_file *file = in != NULL ? calloc(1, sizeof *file) : NULL;
    if (in != NULL) {
        why = file != NULL ? read_lines(in, file) : "no memory";
        (void)fclose(in);
    }
    if (why != NULL) {
        log_say(LOG_FILE_BAD, "%s is ignored: %s: what jobs take is learnt anew", path, why);
        free(file);
        return;
    }
    *ret_file = file;
}

void forecast_file_give(struct forecast_file *file, struct tenant *t)
{
    for (unsigned i = 0; file != NULL && t->forecast.entry == NULL && i < file->count; i++) {
        if (file->kept[i].tenant != t->key) {
            continue;
        }
        for (; i < file->count; i++) { /* the rest of them */
            if (file->kept[i].tenant == t->key) {
                forecast_restore(&t->forecast, &file->kept[i].entry);
                file->kept[i].tenant = 0;
            }
        }
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_entry(FILE *out, uint64_t tenant, const struct forecast_entry *x, unsigned *count)
{
    if (tenant == 0 || x->key == 0 || *count == FORECAST_FILE_MAX) {
        return true;
    }
    ++*count;
    return fprintf(out, "%" PRIx64 " %" PRIx64 " %a %a %" PRIu32 "\n", tenant, x->key,
                   (double)x->mean_ns, (double)x->drift_ns, x->count) > 0;
}

static bool write_lines(FILE *out, const struct forecast_file *file, struct tenant *tenants)
{
    unsigned count = 0;
    bool ok = fputs(FIRST_LINE, out) >= 0;
    for (const struct tenant *t = tenants; t != NULL; t = t->hh.next) {
        for (unsigned i = 0; t->forecast.entry != NULL && i < FORECAST_SETS * FORECAST_WAYS; i++) {
            ok = write_entry(out, t->key, &t->forecast.entry[i], &count) && ok;
        }
    }
    for (unsigned i = 0; file != NULL && i < file->count; i++) {
        ok = write_entry(out, file->kept[i].tenant, &file->kept[i].entry, &count) && ok;
    }
    return fprintf(out, "end %u\n", count) > 0 && ok;
}

static bool learnt(const struct tenant *tenants)
{
    const struct tenant *t = tenants;
    while (t != NULL && t->forecast.entry == NULL) {
        t = t->hh.next;
    }
    return t != NULL;
}

/* Writes another file and renames it, so a reader sees either one whole. */
void forecast_file_write(const struct forecast_file *file, struct tenant *tenants, const char *dir)
{
    char path[PATH_MAX];
    char next[PATH_MAX];
    if (!learnt(tenants) || !path_of(dir, "forecasts", path) ||
        !path_of(dir, "forecasts.new", next)) {
        return;
    }
    (void)unlink(next);
    int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = out != NULL && write_lines(out, file, tenants);
    if (out != NULL) {
        ok = fclose(out) == 0 && ok;
    } else if (fd >= 0) {
        (void)close(fd);
    }
    if (!ok || rename(next, path) != 0) {
        log_say(LOG_FILE_BAD, "%s: %s: what jobs take is learnt anew after a restart", path,
                strerror(errno));
        (void)unlink(next);
    }
}

void forecast_file_destroy(struct forecast_file *file)
{
    free(file);
}

#include "daemon/front/settings/config_file.h"

#include <dirent.h>
#include <errno.h>
#include <libeconf.h>
#include <libeconf_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memfd.h"
#include "daemon/front/settings/config.h"

#define FILE_MAX  (1024 * 1024) /* bytes */
#define VALUE_MAX 8192          /* bytes */

/* Joins the parts of a value that spans several lines or was set several times. */
static int join(char *const *values, char *out, size_t size, struct err *e)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; values != NULL && values[i] != NULL; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i > 0 ? "\n" : "", values[i]);
        if (n < 0 || (size_t)n >= size - used) {
            return err_set(e, ERR_LIMIT, "a value of over %zu bytes", size - 1);
        }
        used += (size_t)n;
    }
    return 0;
}

static int apply_key(const struct config_sink *sink, econf_file *file, const char *path,
                     const char *group, const char *key, struct err *e)
{
    econf_ext_value *found = NULL;
    char value[VALUE_MAX];
    econf_err error = econf_getExtValue(file, group, key, &found);
    if (error != ECONF_SUCCESS || found == NULL) {
        return err_set(e, ERR_INVALID, "%s: [%s] %s: %s", path, group, key, econf_errString(error));
    }
    int rc = join(found->values, value, sizeof value, e);
    bool repeats = sink->repeats != NULL && sink->repeats(group, key);
    if (rc == 0 && strchr(value, '\n') != NULL && !repeats) {
        rc = err_set(e, ERR_INVALID, "%s: set twice or over several lines", key);
    }
    if (sink->place != NULL) {
        (void)snprintf(sink->place, sink->place_size, "%s:%llu", path,
                       (unsigned long long)found->line_number);
    }
    rc = rc == 0 ? sink->set(sink->data, group, key, value, e) : rc;
    if (rc != 0) {
        struct err ignored = ERR_INIT;
        (void)err_wrap(e != NULL ? e : &ignored, "%s:%llu", path,
                       (unsigned long long)found->line_number);
    }
    econf_freeExtValue(found);
    return rc;
}

static int apply_group(const struct config_sink *sink, econf_file *file, const char *path,
                       const char *group, struct err *e)
{
    char **keys = NULL;
    size_t count = 0;
    econf_err error = econf_getKeys(file, group, &count, &keys);
    if (error == ECONF_NOKEY) {
        return 0;
    }
    if (error != ECONF_SUCCESS) {
        return err_set(e, ERR_INVALID, "%s: [%s]: %s", path, group, econf_errString(error));
    }
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = apply_key(sink, file, path, group, keys[i], e);
    }
    econf_freeArray(keys);
    return rc;
}

/* Refuses keys above the first section. */
static int refuse_stray(econf_file *file, const char *path, struct err *e)
{
    char **keys = NULL;
    size_t count = 0;
    if (econf_getKeys(file, NULL, &count, &keys) != ECONF_SUCCESS) {
        return 0;
    }
    int rc = 0;
    if (count > 0) {
        rc = err_set(e, ERR_INVALID, "%s: %s is in no section", path, keys[0]);
    }
    econf_freeArray(keys);
    return rc;
}

static int apply(const struct config_sink *sink, econf_file *file, const char *path, struct err *e)
{
    char **groups = NULL;
    size_t count = 0;
    int rc = refuse_stray(file, path, e);
    if (rc != 0 || econf_getGroups(file, &count, &groups) != ECONF_SUCCESS) {
        return rc; /* a file without sections sets nothing */
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = apply_group(sink, file, path, groups[i], e);
    }
    econf_freeArray(groups);
    return rc;
}

/* Checked here, because libeconf reads files of any kind and size into memory. */
static int check_file(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return err_errno(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s", path);
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
        return err_set(e, ERR_INVALID, "%s: not a file of at most %d bytes", path, FILE_MAX);
    }
    if (access(path, R_OK) != 0) {
        return err_errno(e, ERR_PERMISSION, "%s", path);
    }
    return 0;
}

/* ---- sections --------------------------------------------------------------------------------
 * libeconf gets one section at a time. It does not report where a section begins, nor a section
 * without keys, and (0.5.1) it loses a key that equals the last key of the section before. */

#define SECTIONS_MAX 1024u /* of a file */

struct section_text {
    const char *path;
    const struct config_sink *sink;
    FILE *text; /* the unfinished section, behind as many empty lines as precede it; NULL: none */
    char *data;
    size_t size;
    unsigned count;
};

static int parse(const struct section_text *t, const char *file, struct err *e)
{
    econf_file *parsed = NULL;
    econf_err error = econf_readFile(&parsed, file, "=", "#");
    if (error != ECONF_SUCCESS) {
        char *where = NULL;
        uint64_t line = 0;
        econf_errLocation(&where, &line);
        free(where);
        return err_set(e, error == ECONF_NOMEM ? ERR_NOMEM : ERR_INVALID, "%s:%llu: %s", t->path,
                       (unsigned long long)line, econf_errString(error));
    }
    int rc = apply(t->sink, parsed, t->path, e);
    econf_freeFile(parsed);
    return rc;
}

static int section_end(struct section_text *t, struct err *e)
{
    struct memfd copy = MEMFD_NONE;
    char file[32];
    if (t->text == NULL) {
        return 0;
    }
    int rc = fclose(t->text) == 0 ? 0 : err_errno(e, ERR_NOMEM, "%s", t->path);
    t->text = NULL;
    rc = rc == 0 && t->size > 0 ? memfd_create_sealed("gpud-section", t->size, &copy, e) : rc;
    if (rc == 0 && t->size > 0) {
        memcpy(copy.data, t->data, t->size);
        (void)snprintf(file, sizeof file, "/proc/self/fd/%d", copy.fd);
        rc = parse(t, file, e);
    }
    memfd_finish(&copy);
    free(t->data);
    t->data = NULL;
    return rc;
}

static int section_begin(struct section_text *t, unsigned line, struct err *e)
{
    if (++t->count > SECTIONS_MAX) {
        return err_set(e, ERR_LIMIT, "%s:%u: over %u sections", t->path, line, SECTIONS_MAX);
    }
    t->text = open_memstream(&t->data, &t->size);
    if (t->text == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to read %s", t->path);
    }
    for (unsigned i = 1; i < line; i++) {
        (void)fputc('\n', t->text); /* fclose reports an error */
    }
    return 0;
}

/* A bracket at the beginning of a line opens a section. */
static int take_line(struct section_text *t, const char *line, size_t size, unsigned number,
                     struct err *e)
{
    char name[128];
    const char *begin = line + strspn(line, " \t");
    const char *end = begin[0] == '[' ? strchr(begin, ']') : NULL;
    int rc = 0;
    if (begin[0] == '[') {
        rc = section_end(t, e);
    }
    if (rc == 0 && end != NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - begin - 1), begin + 1);
        rc = t->sink->section(t->sink->data, name)
                 ? 0
                 : err_set(e, ERR_NOT_FOUND, "%s:%u: unknown section [%s]", t->path, number, name);
    }
    rc = rc == 0 && t->text == NULL ? section_begin(t, number, e) : rc;
    if (rc == 0) {
        (void)fwrite(line, 1, size, t->text);
    }
    return rc;
}

static int read_sections(const char *path, const struct config_sink *sink, struct err *e)
{
    struct section_text t = {.path = path, .sink = sink};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int rc = 0;
    for (unsigned number = 1; rc == 0 && (size = getline(&line, &room, file)) >= 0; number++) {
        rc = take_line(&t, line, (size_t)size, number, e);
    }
    if (rc == 0) {
        rc = section_end(&t, e);
    } else if (t.text != NULL) {
        (void)fclose(t.text);
    }
    free(t.data);
    free(line);
    (void)fclose(file);
    return rc;
}

int config_file_read(const char *path, const struct config_sink *sink, struct err *e)
{
    int rc = check_file(path, e);
    /* Without this, libeconf takes the first of several equal keys and ignores the others. */
    if (rc == 0 && setenv("ECONF_JOIN_SAME_ENTRIES", "1", 1) != 0) {
        rc = err_set(e, ERR_NOMEM, "no memory for settings of the environment");
    }
    if (rc == 0) {
        rc = read_sections(path, sink, e);
        (void)unsetenv("ECONF_JOIN_SAME_ENTRIES");
    }
    return rc;
}

static int is_drop_in(const struct dirent *d)
{
    size_t length = strlen(d->d_name);
    return d->d_name[0] != '.' && length > 5 && strcmp(d->d_name + length - 5, ".conf") == 0;
}

int config_dir_read(const char *dir, const struct config_sink *sink,
                    void (*each)(void *data, const char *path), struct err *e)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_drop_in, alphasort);
    if (count < 0) {
        return errno == ENOENT ? 0 : err_errno(e, ERR_IO, "%s", dir);
    }
    int rc = 0;
    for (int i = 0; i < count; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        if (rc == 0) {
            rc = config_file_read(path, sink, e);
        }
        if (rc == 0 && each != NULL) {
            each(sink->data, path);
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

/* ---- the daemon's own settings --------------------------------------------------------------- */

/* tenant_rules.h reads the sections of tenants. */
static bool section_known(void *data, const char *name)
{
    (void)data;
    return config_section(name) || strncmp(name, CONFIG_TENANT, sizeof CONFIG_TENANT - 1) == 0;
}

static bool repeatable(const char *section, const char *key)
{
    return strcmp(section, "daemon") == 0 && strcmp(key, "listen") == 0;
}

static int take(void *data, const char *section, const char *key, const char *value, struct err *e)
{
    char name[128];
    if (strncmp(section, CONFIG_TENANT, sizeof CONFIG_TENANT - 1) == 0) {
        return 0;
    }
    int n = snprintf(name, sizeof name, "%s.%s", section, key);
    return n < 0 || (size_t)n >= sizeof name
               ? err_set(e, ERR_NOT_FOUND, "unknown setting %.40s…", key)
               : config_set(data, name, value, e);
}

static void note_file(void *data, const char *path)
{
    struct config *config = data;
    if (config->file[0] == '\0') {
        (void)snprintf(config->file, sizeof config->file, "%s", path);
    }
}

static int load_system(struct config *config, const struct config_sink *sink, struct err *e)
{
    struct err absent = ERR_INIT;
    char path[CONFIG_PATH + 32];
    (void)snprintf(path, sizeof path, "%s/" CONFIG_FILE, config->root);
    int rc = config_file_read(path, sink, &absent);
    if (rc == 0) {
        note_file(config, path);
    } else if (rc != ERR_NOT_FOUND) {
        if (e != NULL) {
            *e = absent;
        }
        return rc;
    }
    (void)snprintf(path, sizeof path, "%s/" CONFIG_DROP_INS, config->root);
    return config_dir_read(path, sink, note_file, e);
}

int config_load(struct config *config, const char *path, struct err *e)
{
    struct config changed = *config;
    const struct config_sink sink = {
        .section = section_known, .set = take, .repeats = repeatable, .data = &changed};
    changed.chosen = path != NULL;
    if (path != NULL && strlen(path) >= sizeof changed.file) { /* a reload needs the whole path */
        return err_set(e, ERR_LIMIT, "the path %.60s… has over %zu bytes: use a shorter one", path,
                       sizeof changed.file - 1);
    }
    int rc = path != NULL ? config_file_read(path, &sink, e) : load_system(&changed, &sink, e);
    if (rc == 0 && path != NULL) {
        note_file(&changed, path);
    }
    if (rc == 0) {
        *config = changed;
    }
    return rc;
}

/* Files of settings. libeconf parses; every key it found must be one that is known. */
#include <dirent.h>
#include <errno.h>
#include <libeconf.h>
#include <libeconf_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/config.h"

#define SYSTEM_DIR "/etc/gpud/gpud.conf.d"
#define FILE_MAX   (1024 * 1024) /* bytes */

/* Joins the parts of a value, which stand in several lines or were set several times. */
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

static bool repeatable(const char *group, const char *key)
{
    return strcmp(group, "daemon") == 0 && strcmp(key, "listen") == 0;
}

static int apply_key(struct config *config, econf_file *file, const char *path, const char *group,
                     const char *key, struct err *e)
{
    econf_ext_value *found = NULL;
    char name[128];
    char value[2048];
    econf_err error = econf_getExtValue(file, group, key, &found);
    if (error != ECONF_SUCCESS || found == NULL) {
        return err_set(e, ERR_INVALID, "%s: [%s] %s: %s", path, group, key, econf_errString(error));
    }
    int n = snprintf(name, sizeof name, "%s.%s", group, key);
    int rc = 0;
    if (n < 0 || (size_t)n >= sizeof name) {
        rc = err_set(e, ERR_NOT_FOUND, "unknown setting %.40s…", key);
    }
    if (rc == 0) {
        rc = join(found->values, value, sizeof value, e);
    }
    if (rc == 0 && strchr(value, '\n') != NULL && !repeatable(group, key)) {
        rc = err_set(e, ERR_INVALID, "%s: set twice or over several lines", key);
    }
    if (rc == 0) {
        rc = config_set(config, name, value, e);
    }
    if (rc != 0) {
        struct err ignored = ERR_INIT;
        (void)err_wrap(e != NULL ? e : &ignored, "%s:%llu", path,
                       (unsigned long long)found->line_number);
    }
    econf_freeExtValue(found);
    return rc;
}

static int apply_group(struct config *config, econf_file *file, const char *path, const char *group,
                       struct err *e)
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
        rc = apply_key(config, file, path, group, keys[i], e);
    }
    econf_freeArray(keys);
    return rc;
}

/* A key above the first section belongs to none. */
static int refuse_stray(econf_file *file, const char *path, struct err *e)
{
    char **keys = NULL;
    size_t count = 0;
    if (econf_getKeys(file, NULL, &count, &keys) != ECONF_SUCCESS) {
        return 0;
    }
    int rc = 0;
    if (count > 0) {
        rc = err_set(e, ERR_INVALID, "%s: %s stands in no section", path, keys[0]);
    }
    econf_freeArray(keys);
    return rc;
}

static int apply(struct config *config, econf_file *file, const char *path, struct err *e)
{
    char **groups = NULL;
    size_t count = 0;
    int rc = refuse_stray(file, path, e);
    if (rc != 0 || econf_getGroups(file, &count, &groups) != ECONF_SUCCESS) {
        return rc; /* without sections there is nothing set */
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = apply_group(config, file, path, groups[i], e);
    }
    econf_freeArray(groups);
    return rc;
}

/* libeconf does not tell where a section begins, nor of one without keys. The line has been parsed
 * by it before: a bracket at its begin opens a section. */
static int check_section(const char *line, const char *path, unsigned number, struct err *e)
{
    char name[64];
    const char *begin = line + strspn(line, " \t");
    const char *end = begin[0] == '[' ? strchr(begin, ']') : NULL;
    if (end == NULL) {
        return 0;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(end - begin - 1), begin + 1);
    return config_section(name)
               ? 0
               : err_set(e, ERR_NOT_FOUND, "%s:%u: unknown section [%s]", path, number, name);
}

static int check_sections(const char *path, struct err *e)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_errno(e, ERR_IO, "%s", path);
    }
    char *line = NULL;
    size_t room = 0;
    int rc = 0;
    for (unsigned number = 1; rc == 0 && getline(&line, &room, file) >= 0; number++) {
        rc = check_section(line, path, number, e);
    }
    free(line);
    (void)fclose(file);
    return rc;
}

/* libeconf reads what it is given whole and takes anything for a file. */
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

static int load_file(struct config *config, const char *path, struct err *e)
{
    int rc = check_file(path, e);
    if (rc != 0) {
        return rc;
    }
    econf_file *file = NULL;
    econf_err error = econf_readFile(&file, path, "=", "#");
    if (error != ECONF_SUCCESS) {
        char *where = NULL;
        uint64_t line = 0;
        econf_errLocation(&where, &line);
        rc = err_set(e, error == ECONF_NOMEM ? ERR_NOMEM : ERR_INVALID, "%s:%llu: %s", path,
                     (unsigned long long)line, econf_errString(error));
        free(where);
        return rc;
    }
    rc = check_sections(path, e);
    if (rc == 0) {
        rc = apply(config, file, path, e);
    }
    econf_freeFile(file);
    if (rc == 0 && config->file[0] == '\0') {
        (void)snprintf(config->file, sizeof config->file, "%s", path);
    }
    return rc;
}

static int is_drop_in(const struct dirent *d)
{
    size_t length = strlen(d->d_name);
    return d->d_name[0] != '.' && length > 5 && strcmp(d->d_name + length - 5, ".conf") == 0;
}

static int load_dir(struct config *config, const char *dir, struct err *e)
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
            rc = load_file(config, path, e);
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int load_system(struct config *config, struct err *e)
{
    struct err absent = ERR_INIT;
    int rc = load_file(config, CONFIG_SYSTEM_FILE, &absent);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        if (e != NULL) {
            *e = absent;
        }
        return rc;
    }
    return load_dir(config, SYSTEM_DIR, e);
}

int config_load(struct config *config, const char *path, struct err *e)
{
    struct config changed = *config;
    /* Without it libeconf takes the first of several same keys and is silent about the others. */
    if (setenv("ECONF_JOIN_SAME_ENTRIES", "1", 1) != 0) {
        return err_set(e, ERR_NOMEM, "the environment");
    }
    int rc = path != NULL ? load_file(&changed, path, e) : load_system(&changed, e);
    (void)unsetenv("ECONF_JOIN_SAME_ENTRIES");
    if (rc == 0) {
        *config = changed;
    }
    return rc;
}

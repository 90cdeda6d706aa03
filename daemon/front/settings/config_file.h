/* Reads files of settings with libeconf and refuses unknown sections and keys. Blocks on files.
 * Thread: one, as it sets an environment variable for libeconf. */
#ifndef FRONT_SETTINGS_CONFIG_FILE_H
#define FRONT_SETTINGS_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* The receiver of a file's settings. */
struct config_sink {
    bool (*section)(void *data, const char *name); /* whether the section is known */
    /* Receives one setting. Several lines of a key make one value with newlines, if `repeats`
     * allows it. The reader puts file and line in front of an error. */
    int (*set)(void *data, const char *section, const char *key, const char *value, struct err *e);
    bool (*repeats)(const char *section, const char *key); /* NULL: no key may */
    void *data;
    char *place; /* FILE:LINE of the setting while `set` runs, cut; not owned, NULL: not wanted */
    size_t place_size;
};

/* ERR_NOT_FOUND: no such file. Other errors name file and line. */
int config_file_read(const char *path, const struct config_sink *sink, struct err *e);
/* Reads all *.conf files in the order of their names and calls `each` (may be NULL) after each. An
 * absent directory counts as empty. */
int config_dir_read(const char *dir, const struct config_sink *sink,
                    void (*each)(void *data, const char *path), struct err *e);

#endif

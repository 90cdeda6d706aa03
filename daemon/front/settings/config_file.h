/* Files of settings, read with libeconf. Every section and key in them must be one that is known.
 * Pure but for reading; blocks on that. */
#ifndef FRONT_SETTINGS_CONFIG_FILE_H
#define FRONT_SETTINGS_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* Who takes what stands in a file. */
struct config_sink {
    bool (*section)(void *data, const char *name); /* is there such a section? */
    /* One setting. Several lines are one value with newlines where `repeats` allows it. An error
     * gets the file and the line in front. */
    int (*set)(void *data, const char *section, const char *key, const char *value, struct err *e);
    bool (*repeats)(const char *section, const char *key); /* NULL: none */
    void *data;
    char *place; /* not owned; gets FILE:LINE of what is set, cut; NULL: not wanted */
    size_t place_size;
};

/* ERR_NOT_FOUND where there is no such file; else an error names file and line. */
int config_file_read(const char *path, const struct config_sink *sink, struct err *e);
/* All of *.conf, in the order of their names; calls `each` (may be NULL) after each. A directory
 * that is not there is empty. */
int config_dir_read(const char *dir, const struct config_sink *sink,
                    void (*each)(void *data, const char *path), struct err *e);

#endif

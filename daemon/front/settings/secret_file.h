/* Reads the files that settings name for TLS and tokens. A name without a slash is a credential of
 * the service manager, in $CREDENTIALS_DIRECTORY. Blocks on files. Thread: any. */
#ifndef FRONT_SETTINGS_SECRET_FILE_H
#define FRONT_SETTINGS_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define SECRET_FILE_MAX (256u * 1024u) /* bytes */

/* Is the value of a setting an absolute path or the name of a credential? ERR_INVALID. Pure. */
int secret_file_name(const char *key, const char *value, struct err *e);
/* Reads a regular file as text. `hidden`: other users than its owner and group must not be able to
 * read or change it. The caller frees the text with secret_file_free. Errors begin with the key.
 * ERR_IO, ERR_NOT_FOUND, ERR_PERMISSION, ERR_INVALID, ERR_LIMIT, ERR_NOMEM. */
int secret_file_read(const char *key, const char *value, bool hidden, char **ret_text,
                     struct err *e);
void secret_file_free(char *text); /* overwrites it first; NULL is accepted */

#endif

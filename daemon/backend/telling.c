#include "daemon/backend/telling.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void backend_file_name(const char *file, const char *fallback, char out[BACKEND_FILE_MAX])
{
    (void)snprintf(out, BACKEND_FILE_MAX, "%s", file && file[0] ? file : fallback);
    for (char *at = out; *at; at++) {
        if (!isprint((unsigned char)*at) || *at == '"' || *at == '\\') {
            *at = '_';
        }
    }
}

char *backend_log_text(const struct capbuf *log, int rc, const struct err *e)
{
    struct bytes text = capbuf_view(log);
    if (text.size > 0) {
        return strndup((const char *)text.data, text.size);
    }
    return rc != 0 && e ? strdup(e->text) : NULL;
}

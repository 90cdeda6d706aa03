#include "daemon/backend/messages.h"

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
    const char *why = rc != 0 && e ? e->text : "";
    char *all = NULL;
    if (text.size == 0) {
        return rc != 0 && e ? strdup(why) : NULL;
    }
    if (memmem(text.data, text.size, why, strlen(why))) {
        return strndup((const char *)text.data, text.size);
    }
    const char *end = text.data[text.size - 1] != '\n' ? "\n" : "";
    return asprintf(&all, "%.*s%s%s", (int)text.size, (const char *)text.data, end, why) >= 0
               ? all
               : NULL;
}

#include "daemon/compile/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/include.h"
#include "proto/codec.h"

struct headers {
    unsigned count;
    struct include_header at[PROTO_HEADERS_MAX];
    char path[PROTO_HEADERS_MAX][PROTO_HEADER_NAME_MAX + 1];
};

/* "a/./b/../c.h" becomes "a/c.h"; leading ".." are kept. */
static void path_tidy(char *path)
{
    char *out = path;
    for (const char *at = path; *at != '\0';) {
        size_t size = strcspn(at, "/");
        const char *next = at + size + (at[size] == '/');
        char *parent = out > path ? out - 1 : path;
        while (parent > path && parent[-1] != '/') {
            parent--;
        }
        bool up =
            size == 2 && memcmp(at, "..", 2) == 0 && out > path && strncmp(parent, "../", 3) != 0;
        if (up) {
            out = parent;
        } else if (!(size == 1 && at[0] == '.') && !(size == 0 && at != path)) {
            memmove(out, at, (size_t)(next - at));
            out += next - at;
        }
        at = next;
    }
    *out = '\0';
}

static const struct include_header *by_path(const struct headers *h, const char *path)
{
    for (unsigned i = 0; i < h->count; i++) {
        if (strcmp(h->at[i].path, path) == 0) {
            return &h->at[i];
        }
    }
    return NULL;
}

static int find(void *data, const char *from, const char *name, bool angle,
                struct include_header *ret_header, struct err *e)
{
    const struct headers *h = data;
    char path[2 * INCLUDE_NAME_MAX + 2];
    const char *slash = strrchr(from, '/');
    const struct include_header *found = NULL;
    (void)e;
    if (!angle && slash != NULL && name[0] != '/') {
        (void)snprintf(path, sizeof path, "%.*s/%s", (int)(slash - from), from, name);
        path_tidy(path);
        found = by_path(h, path);
    }
    if (found == NULL) {
        (void)snprintf(path, sizeof path, "%s", name);
        path_tidy(path);
        found = by_path(h, path);
    }
    if (found == NULL) {
        return ERR_NOT_FOUND;
    }
    *ret_header = *found;
    return 0;
}

static void headers_read(const struct compile_request *r, struct headers *h)
{
    struct proto_iter it = proto_iter_of(r->headers);
    struct proto_header header;
    while (h->count < PROTO_HEADERS_MAX && proto_list_next(&it, &schema_header, &header)) {
        char *path = h->path[h->count];
        if (bytes_to_str(header.name, path, sizeof h->path[0])) {
            path_tidy(path);
            h->at[h->count] =
                (struct include_header){.number = h->count, .path = path, .text = header.text};
            h->count++;
        }
    }
}

int headers_expand(const struct compile_request *r, const char *file, struct capbuf *out,
                   struct err *e)
{
    struct headers *h = calloc(1, sizeof *h);
    bool any = false;
    if (h == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for headers");
    }
    headers_read(r, h);
    int rc = include_expand(file, r->source, find, h, out, &any, e);
    free(h);
    return rc;
}

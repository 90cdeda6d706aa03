#include "gpuctl/input/include.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <gpud/gpud.h>

#include "common/include.h"

#define FILES_MAX 512u /* different headers */

struct header {
    char *real; /* owned; the real path identifies the file */
    char *path; /* owned: as it was found */
    struct file file;
};

struct headers {
    const struct include_dirs *dirs;
    size_t limit;
    struct header at[FILES_MAX];
    unsigned count;
};

static bool file_at(const char *folder, int folder_size, const char *name, char out[PATH_MAX])
{
    struct stat st;
    int n = name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name)
                           : snprintf(out, PATH_MAX, "%.*s/%s", folder_size, folder, name);
    return n > 0 && n < PATH_MAX && stat(out, &st) == 0 && S_ISREG(st.st_mode);
}

static bool header_find(const struct headers *h, const char *from, const char *name, bool angle,
                        char out[PATH_MAX])
{
    const char *slash = strrchr(from, '/');
    if (!angle && (slash != NULL ? file_at(from, (int)(slash - from), name, out)
                                 : file_at(".", 1, name, out))) {
        return true;
    }
    for (unsigned i = 0; i < h->dirs->count; i++) {
        if (file_at(h->dirs->path[i], (int)strlen(h->dirs->path[i]), name, out)) {
            return true;
        }
    }
    return false;
}

/* Reads a header. `real` belongs to the function. */
static int header_read(struct headers *h, const char *path, char *real, struct err *e)
{
    struct ctl_err why = {0};
    struct header *new = &h->at[h->count];
    *new = (struct header){.real = real, .path = strdup(path)};
    int rc = new->path == NULL
                 ? GPUD_ERR_NOMEM
                 : file_load(path, (struct file_limit){h->limit, h->limit}, &new->file, &why);
    if (rc != 0) {
        free(new->real);
        free(new->path);
        return err_set(e, rc, "%s", why.text[0] != '\0' ? why.text : "out of memory");
    }
    h->count++;
    return 0;
}

static int find(void *data, const char *from, const char *name, bool angle,
                struct include_header *ret_header, struct err *e)
{
    struct headers *h = data;
    char path[PATH_MAX];
    unsigned i = 0;
    if (!header_find(h, from, name, angle, path)) {
        return ERR_NOT_FOUND;
    }
    char *real = realpath(path, NULL);
    if (real == NULL) {
        return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
    }
    while (i < h->count && strcmp(h->at[i].real, real) != 0) {
        i++;
    }
    if (i == FILES_MAX) {
        free(real);
        return err_set(e, ERR_LIMIT, "more than %u headers", FILES_MAX);
    }
    int rc = 0;
    if (i == h->count) {
        rc = header_read(h, path, real, e);
    } else {
        free(real);
    }
    if (rc == 0) {
        *ret_header =
            (struct include_header){.number = i,
                                    .path = h->at[i].path,
                                    .text = bytes_of(h->at[i].file.data, h->at[i].file.size)};
    }
    return rc;
}

static void headers_free(struct headers *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        free(h->at[i].real);
        free(h->at[i].path);
        file_finish(&h->at[i].file);
    }
    free(h);
}

int include_files(const char *path, const struct include_dirs *dirs, size_t limit,
                  struct file *file, struct ctl_err *e)
{
    struct headers *h = calloc(1, sizeof *h);
    struct capbuf out;
    struct err why = ERR_INIT;
    bool any = false;
    if (h == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    *h = (struct headers){.dirs = dirs, .limit = limit};
    capbuf_init(&out, limit);
    int rc = include_expand(path, bytes_of(file->data, file->size), find, h, &out, &any, &why);
    if (rc == 0 && any) {
        file_finish(file);
        *file = (struct file){out.data, out.size};
        out = (struct capbuf){.data = NULL};
    }
    capbuf_finish(&out);
    headers_free(h);
    return rc == 0 ? 0 : ctl_err_set(e, rc, "%s", why.text);
}

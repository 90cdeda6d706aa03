#include "daemon/worker/copy/staging.h"

#include <inttypes.h>

int staging_init(struct staging *s, int input_fd, int output_fd, struct err *e)
{
    *s = (struct staging){.input = MEMFD_NONE, .output = MEMFD_NONE, .before = MEMFD_NONE};
    int rc = memfd_adopt(input_fd, 0, false, &s->input, e);
    if (rc != 0) {
        return err_wrap(e, "input staging memory");
    }
    rc = memfd_adopt(output_fd, 0, true, &s->output, e);
    if (rc != 0) {
        staging_finish(s);
        return err_wrap(e, "output staging memory");
    }
    return 0;
}

int staging_writable(const struct staging *s, struct memfd *ret_m, struct err *e)
{
    return memfd_adopt(s->input.fd, s->input.size, true, ret_m, e);
}

void staging_replace(struct staging *s, struct memfd *m, bool use)
{
    struct memfd old = *m;
    if (use) {
        old = s->input;
        s->input = *m;
    }
    old.fd = -1; /* the descriptor is the input's */
    *m = MEMFD_NONE;
    if (use) {
        s->before = old;
    } else {
        memfd_finish(&old);
    }
}

void staging_finish(struct staging *s)
{
    memfd_finish(&s->input);
    memfd_finish(&s->output);
    memfd_finish(&s->before);
}

int staging_check(const struct memfd *m, const char *kind, uint64_t offset, uint64_t size,
                  struct err *e)
{
    if (offset > m->size || size > m->size - offset) {
        return err_set(e, ERR_RANGE,
                       "%" PRIu64 " bytes at %" PRIu64 " of %s staging memory of %zu bytes", size,
                       offset, kind, m->size);
    }
    return 0;
}

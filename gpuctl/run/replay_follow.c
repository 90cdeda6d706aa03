/* Which buffers have the content that they had when the recording was made. */
#include <string.h>

#include "gpuctl/run/replay.h"

struct follower {
    struct replay *r;
    const json_t *values;
    bool known; /* all that is read so far */
    bool writes;
};

/* How a step accesses an argument. A kernel whose access the recording does not have may read. */
static int access_in(const json_t *arg, const json_t *step, uint32_t index)
{
    const char *op = replay_text(step, "op");
    const char *access = replay_text(arg, "access");
    if (strcmp(op, "launch") == 0) {
        return strcmp(access, "in") == 0    ? GPUD_IN
               : strcmp(access, "out") == 0 ? GPUD_OUT
                                            : GPUD_INOUT;
    }
    bool reads = strcmp(op, "read") == 0 ? index == 0 : index == 1;
    return reads ? GPUD_IN : GPUD_OUT;
}

static bool is_whole(const json_t *arg, const struct replay_buffer *b)
{
    uint64_t count = replay_number(arg, "count");
    return b != NULL && replay_number(arg, "first") == 0 &&
           (count == 0 || count == gpud_shape_count(b->shape));
}

/* An array of the client whose content the job reads. */
static bool reads_array(const json_t *value, int access)
{
    const char *what = replay_text(value, "what");
    bool array = strcmp(what, "array") == 0 || strcmp(what, "shared") == 0;
    return array && (access & GPUD_IN) != 0 && strcmp(replay_text(value, "access"), "out") != 0;
}

static struct replay_buffer *buffer_of(struct replay *r, const json_t *value)
{
    struct replay_buffer *b = NULL;
    uint64_t handle = replay_number(value, "buffer");
    if (handle != 0) {
        REPLAY_FIND(r->buffers, &handle, b);
    }
    return b;
}

static void follow_write(const struct follower *n, struct replay_buffer *b, int access, bool whole)
{
    if (b != NULL && (access & GPUD_OUT) != 0) {
        b->known = n->known && ((access == GPUD_OUT && whole) || b->known);
    }
}

/* The first walk finds what is read, the second one changes what is written. A value counts where a
 * step uses it. */
static int follow(void *user, const json_t *arg, const json_t *step, uint32_t at, uint32_t index,
                  struct ctl_err *e)
{
    struct follower *n = user;
    const json_t *value = arg;
    (void)at;
    (void)e;
    if (strcmp(replay_text(arg, "what"), "param") == 0) {
        value = json_array_get(n->values, replay_number(arg, "index"));
    }
    int access = access_in(arg, step, index);
    struct replay_buffer *b = buffer_of(n->r, value);
    if (n->writes) {
        follow_write(n, b, access, is_whole(arg, b) && is_whole(value, b));
    } else if (reads_array(value, access)) {
        n->known = n->known && json_object_get(value, "data_base64") != NULL;
    } else if (b != NULL && (access & GPUD_IN) != 0) {
        n->known = n->known && b->known;
    }
    return 0;
}

void replay_follow(struct replay *r, struct replay_job *j, bool good)
{
    struct ctl_err ignored;
    const json_t *steps = replay_steps(j->root, j->program);
    struct follower n = {.r = r, .values = json_object_get(j->root, "values"), .known = true};
    (void)replay_args(steps, NULL, follow, &n, &ignored);
    j->known = n.known;
    n.known = n.known && good;
    n.writes = true;
    (void)replay_args(steps, NULL, follow, &n, &ignored);
}

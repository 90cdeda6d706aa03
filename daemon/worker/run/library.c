#include "daemon/worker/run/library.h"

#include "daemon/worker/run/library_call.h"

/* Does the call name memory outside the job? Such calls count as writing it. */
static bool touches_buffers(const struct proto_wstep *s)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    bool any = false;
    while (proto_list_next(&it, &schema_ref, &ref)) {
        any = any || ref.tag == REF_BUFFER || ref.tag == REF_ARENA;
    }
    return any;
}

int library_run(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                const char **ret_by, struct err *e)
{
    const struct device *dev = scope->device;
    struct library_call c;
    struct err why;
    uint64_t bytes = 0;
    err_init(&why);
    if (dev->b->library == NULL || !library_call_make(s, job_ref, j, &c) ||
        dev->b->library->workspace(dev->stream[j->stream], &c.call, &bytes, NULL) != 0 ||
        bytes > j->workspace_size) {
        return ERR_UNSUPPORTED;
    }
    int rc = dev->b->library->run(dev->stream[j->stream], &c.call, j->workspace.ref, ret_by, &why);
    if (rc != 0 && rc != ERR_UNSUPPORTED && e != NULL) {
        *e = why; /* a library that declines is no failure of the job */
    }
    j->writes = j->writes || (rc == 0 && touches_buffers(s));
    return rc;
}

void library_tidy(struct device *dev)
{
    if (dev->b->library != NULL && dev->b->library->tidy != NULL) {
        dev->b->library->tidy(dev->d);
    }
}

#include "daemon/worker/run/library.h"

#include <string.h>

struct call {
    struct backend_call call;
    struct backend_arg arg[PROTO_ARGS_MAX];
    char operation[PROTO_NAME_MAX * 2 + 1];
};

/* What a REF stands for is left out where there is no job with memory yet (NULL). */
static bool call_make(struct job *j, const struct proto_wstep *s, struct call *ret_call)
{
    struct proto_iter it = proto_iter_of(s->args);
    struct proto_ref ref;
    unsigned count = 0;
    if (!bytes_to_str(s->entry, ret_call->operation, sizeof ret_call->operation)) {
        return false;
    }
    while (count < PROTO_ARGS_MAX && proto_list_next(&it, &schema_ref, &ref)) {
        struct backend_arg *arg = &ret_call->arg[count++];
        if (ref.tag == REF_VALUE) {
            *arg = (struct backend_arg){
                .kind = BACKEND_ARG_VALUE, .value = ref.value.data, .size = ref.value.size};
        } else {
            *arg = (struct backend_arg){.kind = BACKEND_ARG_MEMORY, .size = (size_t)ref.size};
            arg->memory = j != NULL ? job_ref(j, &ref) : (struct backend_ref){0};
        }
    }
    ret_call->call = (struct backend_call){.operation = ret_call->operation,
                                           .dtype = (int)s->dtype,
                                           .args = ret_call->arg,
                                           .arg_count = count};
    return true;
}

uint64_t library_workspace(const struct device *dev, unsigned stream, const struct proto_wstep *s)
{
    struct call c;
    uint64_t bytes = 0;
    if (dev->b->library == NULL || !call_make(NULL, s, &c) ||
        dev->b->library->workspace(dev->stream[stream], &c.call, &bytes, NULL) != 0) {
        return 0;
    }
    return bytes;
}

/* Everything that it may write belongs to buffers of sessions, or does not. */
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
    struct call c;
    struct err why;
    uint64_t bytes = 0;
    err_init(&why);
    if (dev->b->library == NULL || !call_make(j, s, &c) ||
        dev->b->library->workspace(dev->stream[j->stream], &c.call, &bytes, NULL) != 0 ||
        bytes > j->workspace_size) {
        return ERR_UNSUPPORTED;
    }
    int rc = dev->b->library->run(dev->stream[j->stream], &c.call, j->workspace.ref, ret_by, &why);
    if (rc != 0 && rc != ERR_UNSUPPORTED && e != NULL) {
        *e = why; /* of a library that only declines, the job knows nothing */
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

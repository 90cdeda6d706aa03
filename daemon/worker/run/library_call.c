#include "daemon/worker/run/library_call.h"

bool library_call_make(const struct proto_wstep *s, library_memory_fn memory, struct job *j,
                       struct library_call *ret_call)
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
            arg->memory = memory != NULL ? memory(j, &ref) : (struct backend_ref){0};
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
    struct library_call c;
    uint64_t bytes = 0;
    if (dev->b->library == NULL || !library_call_make(s, NULL, NULL, &c) ||
        dev->b->library->workspace(dev->stream[stream], &c.call, &bytes, NULL) != 0) {
        return 0;
    }
    return bytes;
}

#include <string.h>

#include "daemon/backend/backend.h"
#include "daemon/backend/built.h"

static const struct backend *const backends[] = {
#ifdef BACKEND_WITH_CUDA
    &backend_cuda,
#endif
#ifdef BACKEND_WITH_OPENCL
    &backend_opencl,
#endif
    &backend_sim,
    NULL,
};

const struct backend *const *backend_list(void)
{
    return backends;
}

const struct backend *backend_find(const char *name)
{
    for (const struct backend *const *b = backends; *b; b++) {
        if (strcmp((*b)->name, name) == 0) {
            return *b;
        }
    }
    return NULL;
}

static bool device_complete(const struct backend_device_ops *o)
{
    return o && o->open && o->close && o->info && o->wakes;
}

static bool memory_complete(const struct backend_memory_ops *o)
{
    return o && o->alloc && o->free && !o->register_host == !o->unregister_host &&
           (!o->host_slice || o->register_host) && !o->import_host == !o->release_host &&
           !o->alloc_shared == !o->free_shared && !o->alloc_shared == !o->share;
}

static bool pages_complete(const struct backend_page_ops *o)
{
    return !o || (o->page_bytes && o->reserve && o->release && o->create && o->destroy && o->map &&
                  o->unmap && o->access);
}

static bool stream_complete(const struct backend_stream_ops *o)
{
    return o && o->create && o->destroy && o->write && o->read && o->copy && o->fill && o->launch &&
           o->mark && o->wait && o->flush;
}

/* A back end with mark_quiet needs `arm`, because quiet markers cause no wake(). */
static bool marker_complete(const struct backend_marker_ops *o, const struct backend_stream_ops *s)
{
    return o && o->state && o->times && o->release && (o->arm || !s->mark_quiet);
}

static bool module_complete(const struct backend_module_ops *o)
{
    return o && o->load && o->unload && o->kernel_count && o->kernel;
}

static bool library_complete(const struct backend_library_ops *o)
{
    return !o || (o->wanted && o->prepare && o->workspace && o->run);
}

int backend_check(const struct backend *b, struct err *e)
{
    if (!b->name || !b->name[0] || !b->enumerate) {
        return err_set(e, ERR_INTERNAL, "a back end without name or enumerate");
    }
    if (b->abi != BACKEND_ABI) {
        return err_set(e, ERR_VERSION, "back end %s: contract %d, this is %d", b->name, b->abi,
                       BACKEND_ABI);
    }
    if (memory_complete(b->memory) && stream_complete(b->stream) &&
        !b->memory->alloc_managed != !b->stream->prefetch) {
        return err_set(e, ERR_INTERNAL, "back end %s: alloc_managed and prefetch go together",
                       b->name);
    }
    const struct {
        const char *table;
        bool complete;
    } tables[] = {
        {"device", device_complete(b->device)},
        {"memory", memory_complete(b->memory)},
        {"page", pages_complete(b->pages)},
        {"stream", stream_complete(b->stream)},
        {"marker", marker_complete(b->marker, b->stream)},
        {"module", module_complete(b->module)},
        {"library", library_complete(b->library)},
    };
    for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (!tables[i].complete) {
            return err_set(e, ERR_INTERNAL, "back end %s: a mandatory %s function is missing",
                           b->name, tables[i].table);
        }
    }
    return 0;
}

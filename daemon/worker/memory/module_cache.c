#include "daemon/worker/memory/module_cache.h"
#include "common/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

void modules_init(struct modules *t, const struct backend *b, struct backend_device *d,
                  uv_loop_t *loop, module_loaded_fn loaded, void *data)
{
    *t = (struct modules){.b = b,
                          .d = d,
                          .loop = loop,
                          .limit_ms = MODULE_LOAD_MS,
                          .ready_ms = MODULE_READY_MS,
                          .loaded = loaded,
                          .data = data};
    (void)uv_timer_init(loop, &t->limit);
    (void)uv_timer_init(loop, &t->ready);
    t->limit.data = t->ready.data = t->work.data = t;
}

static void gone(struct module *m)
{
    free(m->kernels);
    free(m->paces);
    free(m);
}

static void work_next(struct modules *t);

/* A driver that makes unloading wait for what runs makes the thread wait. */
static void release(void *item)
{
    struct module *m = item;
    struct modules *t = m->table;
    if (m->m != NULL && t->releases != NULL) {
        m->work.unloads = true;
        turns_add(&t->turns, &m->work.turn, m->tenant);
        work_next(t);
        return;
    }
    if (m->m != NULL) {
        t->b->module->unload(m->m);
    }
    gone(m);
}

static void destroy(struct modules *t, struct module *m)
{
    m->table = t;
    release_put(m->m != NULL ? t->releases : NULL, &m->release, 0, release, m);
}

void modules_finish(struct modules *t)
{
    struct module *m = t->by_id;
    uv_close((uv_handle_t *)&t->limit, NULL);
    uv_close((uv_handle_t *)&t->ready, NULL);
    HASH_CLEAR(hh, t->by_id); /* the links between the modules stay valid */
    while (m != NULL) {
        struct module *next = m->hh.next;
        destroy(t, m);
        m = next;
    }
}

static int kernels_list(struct modules *t, struct module *m, struct err *e)
{
    unsigned count = t->b->module->kernel_count(m->m);
    if (count > PROTO_KERNELS_MAX) {
        return err_set(e, ERR_LIMIT, "%u kernels in a module, at most %u", count,
                       PROTO_KERNELS_MAX);
    }
    m->kernels = calloc(count > 0 ? count : 1, sizeof *m->kernels);
    m->paces = calloc(2 * (size_t)count + 1, sizeof *m->paces);
    if (m->kernels == NULL || m->paces == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for %u kernels", count);
    }
    for (unsigned i = 0; i < count; i++) {
        int rc = t->b->module->kernel(m->m, i, &m->kernels[i], e);
        if (rc != 0) {
            return err_wrap(e, "kernel %u", i);
        }
    }
    m->kernel_count = count;
    return 0;
}

/* ---- in the thread --------------------------------------------------------------------------- */

/* Reads into private memory, so that no client can change the bytes while they are checked. */
static int binary_read(const struct module_load *l, uint8_t **ret_data, struct err *e)
{
    uint8_t *data = malloc((size_t)l->size);
    if (data == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a module of %" PRIu64 " bytes", l->size);
    }
    for (size_t at = 0; at < l->size;) {
        ssize_t n = pread(l->fd, data + at, (size_t)l->size - at, (off_t)at);
        if (n <= 0) {
            int rc = n < 0 ? err_errno(e, ERR_IO, "reading a module at byte %zu", at)
                           : err_set(e, ERR_PROTOCOL, "a module of %" PRIu64 " bytes ends at %zu",
                                     l->size, at);
            free(data);
            return rc;
        }
        at += (size_t)n;
    }
    *ret_data = data;
    return 0;
}

static void load(struct modules *t, struct module_load *l)
{
    uint8_t *data = NULL;
    int rc = binary_read(l, &data, &l->e);
    if (rc != 0) {
        return;
    }
    rc = t->b->module->load(t->d, bytes_of(data, (size_t)l->size), &l->m->m, &l->e);
    rc = rc == 0 ? kernels_list(t, l->m, &l->e) : rc;
    if (rc != 0) {
        (void)err_wrap(&l->e, "loading a module of %" PRIu64 " bytes", l->size);
    }
    free(data);
}

static void on_work(uv_work_t *work)
{
    struct modules *t = work->data;
    if (t->busy->unloads) {
        t->b->module->unload(((struct module *)t->busy)->m);
    } else {
        load(t, (struct module_load *)t->busy);
    }
}

static void on_prepare(uv_work_t *work)
{
    struct module_load *l = work->data;
    l->table->b->library->prepare(l->table->d, l->wanted);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void load_free(struct modules *t, struct module_load *l)
{
    if (l->fd >= 0) {
        (void)close(l->fd);
    }
    if (l->m != NULL) {
        destroy(t, l->m);
    }
    free(l);
}

static void load_report(struct modules *t, struct module_load *l)
{
    struct module *m = l->m;
    if (l->e.code == 0) {
        HASH_ADD(hh, t->by_id, id, sizeof m->id, m);
        if (HASH_ENTERED(m->hh)) {
            l->m = NULL;
        } else {
            (void)err_set(&l->e, ERR_NOMEM, "no memory for a module");
        }
    }
    t->loaded(t->data, m, &l->e);
}

static void prepare_next(struct modules *t);

static void prepare_over(struct modules *t, struct module_load *l)
{
    LL_DELETE(t->preparing, l);
    if (l->m != NULL) {
        load_report(t, l);
    }
    load_free(t, l);
    prepare_next(t);
}

static void on_prepare_done(uv_work_t *work, int status)
{
    struct module_load *l = work->data;
    (void)status; /* it is never cancelled */
    prepare_over(l->table, l);
}

/* Opening libraries may take any time: after the limit the modules' own kernels run. */
static void on_ready_limit(uv_timer_t *timer)
{
    struct modules *t = timer->data;
    for (struct module_load *l = t->preparing; l != NULL; l = l->next) {
        if (l->m != NULL) {
            load_report(t, l);
        }
    }
}

static void prepare_next(struct modules *t)
{
    struct module_load *l = t->preparing;
    if (l == NULL) {
        (void)uv_timer_stop(&t->ready);
    } else if (uv_queue_work(t->loop, &l->work, on_prepare, on_prepare_done) != 0) {
        prepare_over(t, l); /* reports the module without libraries */
    }
}

static void prepare_add(struct modules *t, struct module_load *l)
{
    bool first = t->preparing == NULL;
    LL_APPEND(t->preparing, l);
    if (!uv_is_active((uv_handle_t *)&t->ready)) {
        (void)uv_timer_start(&t->ready, on_ready_limit, t->ready_ms, 0);
    }
    if (first) {
        prepare_next(t);
    }
}

void modules_prepare_again(struct modules *t)
{
    const struct backend_library_ops *ops = t->b->library;
    unsigned wanted =
        ops != NULL && ops->again != NULL && t->preparing == NULL ? ops->again(t->d) : 0;
    struct module_load *l = wanted != 0 ? calloc(1, sizeof *l) : NULL;
    if (l != NULL) {
        *l = (struct module_load){.table = t, .fd = -1, .e = ERR_INIT, .wanted = wanted};
        l->work.data = l;
        prepare_add(t, l);
    }
}

static void load_over(struct modules *t, struct module_load *l)
{
    LL_DELETE(t->loads, l);
    if (l->e.code == 0 && t->b->library != NULL) {
        l->wanted = t->b->library->wanted(l->m->m);
    }
    if (l->wanted != 0) {
        prepare_add(t, l);
    } else {
        load_report(t, l);
        load_free(t, l);
    }
}

static void on_work_done(uv_work_t *work, int status)
{
    struct modules *t = work->data;
    struct module_work *w = t->busy;
    (void)status; /* it is never cancelled */
    (void)uv_timer_stop(&t->limit);
    t->busy = NULL;
    turns_pass(&t->turns);
    turns_remove(&t->turns, &w->turn);
    if (w->unloads) {
        gone((struct module *)w);
    } else {
        load_over(t, (struct module_load *)w);
    }
    work_next(t);
}

static void on_limit(uv_timer_t *timer)
{
    const struct modules *t = timer->data;
    const struct module_load *l = (const struct module_load *)t->busy;
    struct err e = ERR_INIT;
    if (t->busy->unloads) {
        struct module *m = (struct module *)t->busy;
        (void)err_set(&e, ERR_TIMEOUT,
                      "unloading module %" PRIu64 " did not end within %" PRIu64 " ms", m->id,
                      t->limit_ms);
        t->loaded(t->data, m, &e);
        return;
    }
    (void)err_set(&e, ERR_TIMEOUT,
                  "loading a module of %" PRIu64 " bytes did not end within %" PRIu64 " ms",
                  l->size, t->limit_ms);
    t->loaded(t->data, l->m, &e);
}

static void work_next(struct modules *t)
{
    if (t->turns.first != NULL && t->busy == NULL) {
        t->busy = (struct module_work *)t->turns.first;
        (void)uv_timer_start(&t->limit, on_limit, t->limit_ms, 0); /* not after modules_finish */
        /* it fails only without a function */
        (void)uv_queue_work(t->loop, &t->work, on_work, on_work_done);
    }
}

bool modules_busy(const struct modules *t)
{
    return t->turns.first != NULL || t->preparing != NULL;
}

/* Counts modules that are not reported yet. *ret_found becomes true if `id` is one of them. */
static unsigned count_unreported(const struct module_load *l, uint64_t id, bool *ret_found)
{
    unsigned count = 0;
    for (; l != NULL; l = l->next) {
        count += l->m != NULL;
        *ret_found = *ret_found || (l->m != NULL && l->m->id == id);
    }
    return count;
}

static int load_check(const struct modules *t, uint64_t id, struct bytes hash, uint64_t size,
                      struct err *e)
{
    struct module *m = NULL;
    bool loading = false;
    unsigned count = count_unreported(t->loads, id, &loading);
    count += count_unreported(t->preparing, id, &loading);
    HASH_FIND(hh, t->by_id, &id, sizeof id, m);
    if (m != NULL || loading) {
        return err_set(e, ERR_EXISTS, "module %" PRIu64, id);
    }
    if (HASH_COUNT(t->by_id) + count >= MODULES_MAX || hash.size > HASH_BYTES) {
        return err_set(e, ERR_LIMIT, "a worker has at most %u modules", MODULES_MAX);
    }
    return size == 0 || size > MODULE_BYTES_MAX
               ? err_set(e, ERR_PROTOCOL, "module of %" PRIu64 " bytes", size)
               : 0;
}

int module_load(struct modules *t, uint64_t id, uint64_t tenant, struct bytes hash, int fd,
                uint64_t size, struct err *e)
{
    int rc = load_check(t, id, hash, size, e);
    struct module_load *l = rc == 0 ? calloc(1, sizeof *l) : NULL;
    struct module *m = l != NULL ? calloc(1, sizeof *m) : NULL;
    if (m == NULL) {
        free(l);
        (void)close(fd);
        return rc != 0 ? rc : err_set(e, ERR_NOMEM, "no memory for module %" PRIu64, id);
    }
    m->id = id;
    m->tenant = tenant;
    m->hash_size = hash.size;
    if (hash.size > 0) {
        memcpy(m->hash, hash.data, hash.size);
    }
    *l = (struct module_load){.table = t, .m = m, .fd = fd, .size = size, .e = ERR_INIT};
    l->work.data = l; /* for on_prepare */
    LL_APPEND(t->loads, l);
    turns_add(&t->turns, &l->load.turn, tenant);
    work_next(t);
    return 0;
}

struct module *module_find(const struct modules *t, uint64_t id, struct err *e)
{
    struct module *m = NULL;
    HASH_FIND(hh, t->by_id, &id, sizeof id, m);
    if (m == NULL) {
        (void)err_set(e, ERR_BAD_HANDLE, "the worker has no module %" PRIu64, id);
    }
    return m;
}

const struct backend_kernel *module_kernel(const struct module *m, const char *entry, struct err *e)
{
    for (unsigned i = 0; i < m->kernel_count; i++) {
        if (strcmp(m->kernels[i].entry, entry) == 0) {
            return &m->kernels[i];
        }
    }
    (void)err_set(e, ERR_NOT_FOUND, "module %" PRIu64 " has no kernel %s", m->id, entry);
    return NULL;
}

int module_variable(const struct modules *t, const struct module *m, struct bytes name,
                    uint64_t size, struct backend_block **ret_block, struct err *e)
{
    char text[PROTO_NAME_MAX + 1];
    struct backend_block *block = NULL;
    uint64_t bytes = 0;
    if (t->b->module->variable == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "variables of modules are not supported by back end %s",
                       t->b->name);
    }
    if (!bytes_to_str(name, text, sizeof text)) {
        return err_set(e, ERR_NOT_FOUND, "name of a variable is not a text");
    }
    int rc = t->b->module->variable(m->m, text, &block, &bytes, e);
    if (rc == 0 && bytes != size) {
        rc = err_set(e, ERR_ARG_SHAPE, "variable %s has %" PRIu64 " bytes, not %" PRIu64, text,
                     bytes, size);
    }
    if (rc == 0) {
        *ret_block = block;
    }
    return rc;
}

void module_unload(struct modules *t, struct module *m)
{
    HASH_DEL(t->by_id, m);
    m->unloaded = true;
    if (m->uses == 0) {
        destroy(t, m);
    }
}

void module_use(struct module *m)
{
    m->uses++;
}

void module_unuse(struct modules *t, struct module *m)
{
    m->uses--;
    if (m->uses == 0 && m->unloaded) {
        destroy(t, m);
    }
}

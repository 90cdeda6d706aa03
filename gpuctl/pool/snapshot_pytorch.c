/*
 * The snapshot in the shape of PyTorch's memory snapshots, as a pickle, which is all that PyTorch's
 * viewer reads. Segments are all addresses that were in use at any time of the log, so that every
 * block is in a segment. A block's tenant and name take the place of Python's stack frames.
 */
#include <stdlib.h>

#include "gpuctl/pool/pickle.h"
#include "gpuctl/pool/snapshot.h"

struct range {
    uint64_t at, end;
};

static int by_place(const void *a, const void *b)
{
    const struct range *x = a;
    const struct range *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The used ranges in order, adjacent ranges merged; freed by the caller. NULL: out of memory. */
static struct range *ranges_make(const struct snapshot_device *d, uint32_t *ret_count)
{
    struct range *r = calloc((size_t)d->piece_count + d->event_count + 1, sizeof *r);
    uint32_t n = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; r != NULL && i < d->piece_count; i++) {
        const struct snapshot_piece *p = &d->pieces[i];
        if (p->state != SNAPSHOT_VOID) {
            r[n++] = (struct range){p->at, p->at + p->size};
        }
    }
    for (uint32_t i = 0; r != NULL && i < d->event_count; i++) {
        const struct snapshot_event *v = &d->events[i];
        if (v->kind <= SNAPSHOT_RELEASE) {
            r[n++] = (struct range){v->at, v->at + v->size};
        }
    }
    if (n > 0) {
        qsort(r, n, sizeof *r, by_place);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && r[i].at <= r[kept - 1].end) {
            r[kept - 1].end = r[i].end > r[kept - 1].end ? r[i].end : r[kept - 1].end;
        } else {
            r[kept++] = r[i];
        }
    }
    *ret_count = kept;
    return r;
}

static void frames(const struct snapshot *snapshot, uint32_t tenant, const struct snapshot_piece *p,
                   struct pickle *out)
{
    const char *name = snapshot_text(snapshot, p != NULL && p->label != 0 ? p->label
                                               : p != NULL                ? p->kind
                                                                          : 0);
    pickle_key(out, "frames");
    struct pickle_list list = pickle_list(out);
    if (tenant != 0 || name[0] != '\0') {
        pickle_item(out, &list);
        pickle_dict(out);
        pickle_key(out, "filename");
        pickle_text(out, snapshot_text(snapshot, tenant));
        pickle_key(out, "line");
        pickle_uint(out, p != NULL ? p->id : 0);
        pickle_key(out, "name");
        pickle_text(out, name);
        pickle_dict_end(out);
    }
    pickle_list_end(out);
}

static void block(const struct snapshot *snapshot, struct pickle_list *list, uint64_t at,
                  uint64_t size, const struct snapshot_piece *p, struct pickle *out)
{
    pickle_item(out, list);
    pickle_dict(out);
    pickle_key(out, "address");
    pickle_uint(out, at);
    pickle_key(out, "size");
    pickle_uint(out, size);
    pickle_key(out, "requested_size");
    pickle_uint(out, size);
    pickle_key(out, "state");
    pickle_text(out, p != NULL ? "active_allocated" : "inactive");
    frames(snapshot, p != NULL ? p->tenant : 0, p, out);
    pickle_dict_end(out);
}

/* Writes the live pieces of a range and the gaps between them. *next: index of the first piece of
 * the range; afterwards of the first piece after it. Returns the bytes of live pieces. */
static uint64_t blocks(const struct snapshot *snapshot, const struct snapshot_device *d,
                       struct range r, uint32_t *next, struct pickle *out)
{
    uint64_t at = r.at;
    uint64_t live = 0;
    struct pickle_list list = pickle_list(out);
    for (; *next < d->piece_count && d->pieces[*next].at < r.end; (*next)++) {
        const struct snapshot_piece *p = &d->pieces[*next];
        if (p->state != SNAPSHOT_LIVE || p->at < at) {
            continue;
        }
        if (p->at > at) {
            block(snapshot, &list, at, p->at - at, NULL, out);
        }
        block(snapshot, &list, p->at, p->size, p, out);
        live += p->size;
        at = p->at + p->size;
    }
    if (at < r.end) {
        block(snapshot, &list, at, r.end - at, NULL, out);
    }
    pickle_list_end(out);
    return live;
}

static void segment(const struct snapshot *snapshot, const struct snapshot_device *d,
                    struct range r, uint32_t *next, struct pickle *out)
{
    pickle_dict(out);
    pickle_key(out, "device");
    pickle_uint(out, d->id);
    pickle_key(out, "address");
    pickle_uint(out, r.at);
    pickle_key(out, "total_size");
    pickle_uint(out, r.end - r.at);
    pickle_key(out, "stream");
    pickle_uint(out, 0);
    pickle_key(out, "segment_type");
    pickle_text(out, "large");
    pickle_key(out, "is_expandable");
    pickle_uint(out, 0);
    pickle_key(out, "frames");
    (void)pickle_list(out);
    pickle_list_end(out);
    pickle_key(out, "blocks");
    uint64_t live = blocks(snapshot, d, r, next, out);
    pickle_key(out, "allocated_size");
    pickle_uint(out, live);
    pickle_key(out, "active_size");
    pickle_uint(out, live);
    pickle_dict_end(out);
}

static void trace_entry(const struct snapshot *snapshot, const struct snapshot_device *d,
                        const struct snapshot_event *v, const char *action,
                        const struct snapshot_piece *p, struct pickle *out)
{
    uint64_t ago = d->taken_ns > v->before_ns ? d->taken_ns - v->before_ns : 0;
    pickle_dict(out);
    pickle_key(out, "action");
    pickle_text(out, action);
    pickle_key(out, "addr");
    pickle_uint(out, v->at);
    pickle_key(out, "size");
    pickle_uint(out, v->size);
    pickle_key(out, "stream");
    pickle_uint(out, v->stream);
    pickle_key(out, "device_free"); /* required for "oom"; not known here */
    pickle_uint(out, 0);
    pickle_key(out, "time_us");
    pickle_uint(out, d->wall_ns > ago ? (d->wall_ns - ago) / 1000 : 0);
    frames(snapshot, v->tenant, p, out);
    pickle_dict_end(out);
}

/* Writes the events of a device; false: out of memory. */
static bool trace(const struct snapshot *snapshot, const struct snapshot_device *d,
                  struct pickle *out)
{
    uint32_t count = 0;
    struct snapshot_piece *live = snapshot_live(d, &count);
    struct snapshot_piece *again = snapshot_live(d, &count);
    uint32_t *piece = calloc((size_t)d->event_count + 1, sizeof *piece);
    bool known = live != NULL && again != NULL && piece != NULL &&
                 snapshot_rewind(d, again, count, piece) != UINT32_MAX;
    struct pickle_list list = pickle_list(out);
    for (uint32_t i = 0; known && i < d->event_count; i++) {
        const struct snapshot_event *v = &d->events[i];
        const struct snapshot_piece *p = piece[i] != SNAPSHOT_NO_PIECE ? &live[piece[i]] : NULL;
        if (v->kind > SNAPSHOT_REFUSE) {
            continue;
        }
        pickle_item(out, &list);
        if (v->kind == SNAPSHOT_RELEASE) {
            trace_entry(snapshot, d, v, "free_requested", p, out);
            pickle_item(out, &list);
        }
        trace_entry(snapshot, d, v,
                    v->kind == SNAPSHOT_RELEASE  ? "free_completed"
                    : v->kind == SNAPSHOT_REFUSE ? "oom"
                                                 : "alloc",
                    p, out);
    }
    pickle_list_end(out);
    free(live);
    free(again);
    free(piece);
    return known;
}

static const struct snapshot_device *device_of(const struct snapshot *snapshot, uint64_t id)
{
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        if (snapshot->devices[i].id == id) {
            return &snapshot->devices[i];
        }
    }
    return NULL;
}

static uint64_t last_device(const struct snapshot *snapshot)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        last = snapshot->devices[i].id > last ? snapshot->devices[i].id : last;
    }
    return last < 1024 ? last : 1023;
}

bool snapshot_write_pytorch(const struct snapshot *snapshot, FILE *stream)
{
    static const struct snapshot_device none = {.id = 0};
    struct pickle out;
    bool good = true;
    pickle_begin(&out, stream);
    pickle_dict(&out);
    pickle_key(&out, "segments");
    struct pickle_list list = pickle_list(&out);
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const struct snapshot_device *d = &snapshot->devices[i];
        uint32_t count = 0;
        uint32_t next = 0;
        struct range *r = ranges_make(d, &count);
        good = good && r != NULL;
        for (uint32_t k = 0; r != NULL && k < count; k++) {
            pickle_item(&out, &list);
            segment(snapshot, d, r[k], &next, &out);
        }
        free(r);
    }
    pickle_list_end(&out);
    pickle_key(&out, "device_traces"); /* indexed by the device's id */
    list = pickle_list(&out);
    for (uint64_t id = 0; id <= last_device(snapshot); id++) {
        const struct snapshot_device *d = device_of(snapshot, id);
        pickle_item(&out, &list);
        good = trace(snapshot, d != NULL ? d : &none, &out) && good;
    }
    pickle_list_end(&out);
    pickle_dict_end(&out);
    pickle_end(&out);
    return good;
}

#include "daemon/worker/copy/transfer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

#define PRIORITY   (-1)                /* behind the copies of jobs */
#define STEP_BYTES (UINT64_C(4) << 20) /* bytes sealed in a poll, of a buffer on the host */

void transfers_init(struct transfers *t, struct device *device, struct copies *copies,
                    struct buffers *buffers, transfer_done_fn done, transfer_used_fn used,
                    void *data)
{
    *t = (struct transfers){.device = device,
                            .copies = copies,
                            .buffers = buffers,
                            .done = done,
                            .used = used,
                            .data = data};
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Keeps the host copy by its descriptor. A copy in the arena is no longer needed then. */
static void keep_host(struct transfer *x)
{
    struct buffer *b = x->buffer;
    b->sealed_fd = x->host.fd;
    x->host.fd = -1;
    if (b->spilled != NULL) {
        x->t->buffers->forget(x->t->buffers->data, b);
    }
}

uint64_t transfers_piece(const struct transfers *t)
{
    uint64_t whole = t->device->info.cpu ? TRANSFER_PIECE_CPU : TRANSFER_PIECE;
    return whole >> t->shrinks;
}

/* A part of a piece that was quick says nothing about whole ones. */
void transfers_paced(struct transfers *t, uint64_t bytes, uint64_t ns)
{
    if (ns > TRANSFER_LONG_NS && transfers_piece(t) > TRANSFER_PIECE_MIN) {
        t->shrinks++;
    } else if (ns < TRANSFER_SHORT_NS && t->shrinks > 0 && bytes >= transfers_piece(t)) {
        t->shrinks--;
    }
}

/* To be called when the service stream has passed the transfer's commands, or they failed. */
static void marker_passed(struct transfer *x)
{
    if (x->marker != NULL) {
        if (x->piece > 0) {
            transfers_paced(x->t, x->piece, clock_now_ns() - x->piece_ns);
        }
        x->t->zeroing -= x->piece;
        x->piece = 0;
        memory_passed(&x->t->device->memory, &x->point);
        x->t->device->b->marker->release(x->marker);
        x->marker = NULL;
        x->buffer->filling = NULL;
    }
}

static bool zeroed_all(const struct transfer *x)
{
    return x->kind == TRANSFER_ZERO && !x->unmapped && x->zeroed == x->buffer->piece.pool.size;
}

/* Does the transfer need the buffer's device memory? A seal that waits for jobs does not,
 * because it may be made from the host. */
static bool is_pinned(const struct transfer *x)
{
    return x->kind != TRANSFER_SEAL || !x->waits;
}

/* The host copy after a seal, or of a buffer that is back. */
static void settle_host(struct transfers *t, struct transfer *x)
{
    struct buffer *b = x->buffer;
    if (x->kind == TRANSFER_SEAL && b->sealed_fd < 0 && !x->superseded && !x->lent) {
        keep_host(x);
        memfd_finish(&x->host); /* its mapping would be in the way */
        /* if it fails, the buffer cannot be granted */
        (void)memfd_freeze(b->sealed_fd, NULL);
    } else if (x->kind == TRANSFER_RESTORE && b->lent && !buffer_away(b)) {
        buffer_unseal(t->buffers, b);
    }
}

static void finish(struct transfers *t, struct transfer *x, const struct err *e)
{
    struct buffer *b = x->buffer;
    if (device_is_lost(e->code)) {
        x->done(x->data, b, e); /* the process ends; until then no memory is moved or freed */
        return;
    }
    DL_DELETE(t->first, x);
    if (x->kind != TRANSFER_SEAL) {
        b->arrival = BUFFER_ARRIVED;
        b->loss = e->code != 0 ? BUFFER_BROKEN : BUFFER_WHOLE;
    }
    bool clean = x->kind == TRANSFER_RESTORE || zeroed_all(x);
    if (clean && e->code == 0) {
        memory_cleaned(&b->piece);
    }
    if (e->code == 0) {
        settle_host(t, x);
    }
    bool quiet = x->superseded && e->code == 0;
    bool pinned = is_pinned(x);
    memfd_finish(&x->host);
    if (!quiet) {
        x->done(x->data, b, e);
    }
    free(x);
    if (pinned) {
        buffer_unpin(t->buffers, b);
    }
    buffer_unuse(t->buffers, b);
}

static void on_copied(struct copy *copy, const struct err *e)
{
    struct transfer *x = copy->data;
    finish(x->t, x, e);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* Enqueues zeros for the next piece. The buffer's memory is zeroed to its very end, a multiple
 * of the pattern. */
static int zero_piece(struct transfer *x, struct err *e)
{
    static const uint8_t ZEROS[16];
    struct device *dev = x->t->device;
    struct buffer *b = x->buffer;
    uint64_t rest = b->piece.pool.size - x->zeroed;
    uint64_t bytes = rest < transfers_piece(x->t) ? rest : transfers_piece(x->t);
    struct backend_ref at = b->piece.ref;
    at.offset += x->zeroed;
    int rc = dev->b->stream->fill(dev->service, at, ZEROS, sizeof ZEROS, bytes, e);
    if (rc != 0) {
        return rc;
    }
    if (device_mark_service(dev, &x->marker, &x->point, e) != 0) {
        buffer_use(b); /* the end can never be known: the memory must not be freed */
        buffer_pin(x->t->buffers, b);
        return err_wrap(e, "marking the end of zeros in buffer %" PRIu64, b->id);
    }
    x->zeroed += bytes;
    x->piece = bytes;
    x->piece_ns = clock_now_ns();
    x->t->zeroing += bytes;
    x->t->last_tenant = b->tenant;
    if (zeroed_all(x)) { /* from now on jobs can wait for the marker in their streams */
        b->filling = x->marker;
        b->arrival = BUFFER_ARRIVED;
    }
    return 0;
}

/* Finds the transfer to zero a piece of: the first one of the next tenant in turn. */
static struct transfer *zero_next(const struct transfers *t)
{
    struct transfer *next = NULL;
    struct transfer *first = NULL;
    for (struct transfer *x = t->first; x != NULL; x = x->next) {
        uint64_t tenant = x->buffer->tenant;
        if (x->kind != TRANSFER_ZERO || x->unmapped || x->marker != NULL || zeroed_all(x)) {
            continue;
        }
        if (tenant > t->last_tenant && (next == NULL || tenant < next->buffer->tenant)) {
            next = x;
        }
        if (first == NULL || tenant < first->buffer->tenant) {
            first = x;
        }
    }
    return next != NULL ? next : first;
}

static void zero_some(struct transfers *t)
{
    struct transfer *x;
    while (t->zeroing <= transfers_piece(t) && (x = zero_next(t)) != NULL) {
        struct err e = ERR_INIT;
        if (zero_piece(x, &e) != 0) {
            finish(t, x, &e);
        }
        if (device_is_lost(e.code)) {
            return;
        }
    }
}

/* Enqueues what the service stream has to do before the copy. If its end cannot be marked it can
 * never be known, so the memory is kept until the process ends. */
static int serve(struct transfer *x, struct err *e)
{
    struct device *dev = x->t->device;
    struct buffer *b = x->buffer;
    int rc = 0;
    if (x->kind == TRANSFER_RESTORE) { /* the copy writes the bytes before b->size */
        rc = memory_clear(&dev->memory, &b->piece, b->size, memory_service(&dev->memory), e);
    }
    bool any = b->piece.dirty || !memory_settled(&dev->memory, &b->piece);
    if (rc != 0 || x->kind == TRANSFER_ZERO || x->kind == TRANSFER_SEAL || !any) {
        return rc;
    }
    if (device_mark_service(dev, &x->marker, &x->point, e) != 0) {
        buffer_use(b);
        return err_wrap(e, "marking the end of a copy of buffer %" PRIu64, b->id);
    }
    b->filling = x->marker;
    return 0;
}

static void copy_start(struct transfer *x)
{
    bool seal = x->kind == TRANSFER_SEAL;
    x->waits = false;
    x->copy = (struct copy){.direction = seal ? COPY_FROM_DEVICE : COPY_TO_DEVICE,
                            .ref = x->buffer->piece.ref,
                            .host = x->host.data,
                            .size = x->buffer->size,
                            .priority = PRIORITY,
                            .done = on_copied,
                            .data = x};
    copies_add(x->t->copies, &x->copy);
}

static int start(struct transfers *t, const struct transfer *asked, struct memfd *host,
                 struct err *e)
{
    struct transfer *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a transfer");
    }
    *x = *asked;
    enum transfer_kind kind = x->kind;
    struct buffer *b = x->buffer;
    x->unmapped = kind != TRANSFER_SEAL && memory_unmapped(&b->piece);
    int rc = x->unmapped ? 0 : serve(x, e);
    if (rc != 0) {
        free(x);
        return rc;
    }
    if (host != NULL) {
        x->host = *host;
        *host = MEMFD_NONE;
    }
    if (kind == TRANSFER_RESTORE) { /* a front that connects meanwhile sees that it is sealed */
        keep_host(x);
    }
    buffer_use(b);
    x->waits = kind == TRANSFER_SEAL || kind == TRANSFER_RESTORE;
    if (is_pinned(x)) {
        buffer_pin(t->buffers, b);
    }
    DL_APPEND(t->first, x);
    if (kind == TRANSFER_RESTORE) {
        b->arrival = BUFFER_RESTORED;
    } else if (kind == TRANSFER_ZERO || x->unmapped) {
        b->arrival = BUFFER_FETCHED; /* a front that connects now need not wait for zeros */
    }
    zero_some(t);
    return 0;
}

int transfer_start(struct transfers *t, enum transfer_kind kind, struct buffer *b,
                   struct memfd *host, uint64_t behind, struct err *e)
{
    const struct transfer asked = {.kind = kind == TRANSFER_LEND ? TRANSFER_SEAL : kind,
                                   .lent = kind == TRANSFER_LEND,
                                   .buffer = b,
                                   .behind = behind,
                                   .host = MEMFD_NONE,
                                   .done = t->done,
                                   .data = t->data,
                                   .t = t};
    return start(t, &asked, host, e);
}

int transfer_zero(struct transfers *t, struct buffer *b, transfer_done_fn done, void *data,
                  struct err *e)
{
    const struct transfer asked = {
        .kind = TRANSFER_ZERO, .buffer = b, .host = MEMFD_NONE, .done = done, .data = data, .t = t};
    return start(t, &asked, NULL, e);
}

void transfers_supersede(struct transfers *t, const struct buffer *b)
{
    for (struct transfer *x = t->first; x != NULL; x = x->next) {
        x->superseded = x->superseded || (x->kind == TRANSFER_SEAL && x->buffer == b);
    }
}

void transfers_disown(struct transfers *t)
{
    for (struct transfer *x = t->first; x != NULL; x = x->next) {
        bool asked = x->done == t->done; /* by the front */
        x->superseded = x->superseded || (asked && x->kind != TRANSFER_RESTORE);
    }
}

/* ---- on the way ---------------------------------------------------------------------------- */

/* Has the service stream done the transfer's part, if it had one? Returns false also if the part
 * failed; the transfer is then freed. */
static bool served(struct transfers *t, struct transfer *x)
{
    struct err e = ERR_INIT;
    enum backend_state state = BACKEND_DONE;
    if (x->marker != NULL) {
        state = t->device->b->marker->state(x->marker, &e);
    }
    if (state != BACKEND_DONE && state != BACKEND_FAILED) {
        return false;
    }
    marker_passed(x);
    if (state == BACKEND_FAILED) {
        finish(t, x, &e);
    }
    return state == BACKEND_DONE;
}

/* Seals a buffer that is on the host from its copy there, a step at a time, without device
 * memory. */
static void seal_away(struct transfers *t, struct transfer *x)
{
    struct buffer *b = x->buffer;
    struct err e = ERR_INIT;
    uint64_t rest = b->size - x->copied;
    uint64_t bytes = rest < STEP_BYTES ? rest : STEP_BYTES;
    int rc = t->away(t->data, b, x->copied, x->host.data + x->copied, bytes, &e);
    x->copied += rc == 0 ? bytes : 0;
    if (rc == 0 && x->copied == b->size && !x->superseded && !x->lent) {
        buffer_unseal(t->buffers, b);
    }
    if (rc < 0 || x->copied == b->size) {
        finish(t, x, &e);
    } else if (rc == 0) { /* no event of the device would lead to the next step */
        t->copies->wake(t->copies->wake_data);
    }
}

/* Begins the seal once the commands that fill the buffer have been passed. */
static void seal_poll(struct transfers *t, struct transfer *x)
{
    struct buffer *b = x->buffer;
    struct err e = ERR_INIT;
    if (b->filling != NULL || b->arrival != BUFFER_ARRIVED || b->loss == BUFFER_TORN ||
        t->used(t->data, b, x->behind)) {
        return;
    }
    if (buffer_whole(b, &e) != 0) {
        finish(t, x, &e);
        return;
    }
    if (!buffer_away(b)) {
        x->copied = 0;
        if (!x->superseded && !x->lent) {
            buffer_unseal(t->buffers, b);
        }
        buffer_pin(t->buffers, b);
        copy_start(x);
    } else {
        seal_away(t, x);
    }
}

/* A freed buffer needs no more zeros. Its memory is still dirty, so the next user zeroes it. */
static void zero_poll(struct transfers *t, struct transfer *x)
{
    struct err ok = ERR_INIT;
    if (served(t, x) && (zeroed_all(x) || x->buffer->freed)) {
        finish(t, x, &ok);
    }
}

/* The buffer's memory is mapped: the transfer begins. It may be found dirty only now. */
static void begin(struct transfers *t, struct transfer *x)
{
    struct buffer *b = x->buffer;
    struct err e = ERR_INIT;
    x->unmapped = false;
    if (x->kind == TRANSFER_SETTLE && b->piece.dirty) {
        x->kind = TRANSFER_ZERO;
    } else if (x->kind == TRANSFER_SETTLE) {
        b->arrival = BUFFER_ARRIVED;
    }
    if (serve(x, &e) != 0) {
        finish(t, x, &e);
    }
}

/* Without memory the buffer is as if it had been created on a full device. */
static void begin_without(struct transfers *t, struct transfer *x)
{
    struct buffer *b = x->buffer;
    struct err e = ERR_INIT;
    if (!b->lent && !buffers_may_be_away(t->buffers, b->size)) {
        (void)memory_refused(&t->device->memory, &e);
        (void)err_wrap(&e, "buffer of %" PRIu64 " bytes", b->size);
    }
    memory_free(&t->device->memory, &b->piece);
    finish(t, x, &e);
}

/* Is the memory of a transfer still being mapped? It may have ended if it is not. */
static bool mapping(struct transfers *t, struct transfer *x)
{
    struct err ok = ERR_INIT;
    if (!x->unmapped) {
        return false;
    }
    if (x->buffer->freed) { /* no request waits for its bytes */
        finish(t, x, &ok);
        return true;
    }
    switch (memory_late(&t->device->memory, &x->buffer->piece)) {
    case POOL_READY:
        begin(t, x);
        break;
    case POOL_FAILED:
        begin_without(t, x);
        break;
    case POOL_WAITS:
        break;
    }
    return true;
}

static void poll_one(struct transfers *t, struct transfer *x)
{
    struct err ok = ERR_INIT;
    if (mapping(t, x)) {
        return;
    }
    if (x->kind == TRANSFER_SEAL) {
        if (x->waits) {
            seal_poll(t, x);
        }
    } else if (x->kind == TRANSFER_RESTORE) {
        if (x->waits && served(t, x)) {
            copy_start(x);
        }
    } else if (x->kind == TRANSFER_ZERO) {
        zero_poll(t, x);
    } else if (served(t, x)) {
        finish(t, x, &ok);
    }
}

void transfers_poll(struct transfers *t)
{
    struct transfer *x;
    struct transfer *next;
    DL_FOREACH_SAFE(t->first, x, next)
    {
        poll_one(t, x);
    }
    zero_some(t);
}

static bool waits_for_jobs(const struct transfers *t, const struct transfer *x)
{
    return x->kind == TRANSFER_SEAL && x->waits && t->used(t->data, x->buffer, x->behind);
}

bool transfers_move(const struct transfers *t, const uint64_t *tenant)
{
    const struct transfer *x = t->first;
    while (x != NULL &&
           ((tenant != NULL && x->buffer->tenant != *tenant) || waits_for_jobs(t, x))) {
        x = x->next;
    }
    return x != NULL;
}

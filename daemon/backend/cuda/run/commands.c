/* Streams: creation, end and commands. */
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/run/stream.h"
#include "daemon/backend/ranges.h"

static void stream_destroy(struct backend_stream *s)
{
    if (!s) {
        return;
    }
    cuda_event_give(s->device, s->begin);
    s->device->stream_ends(s);
    if (s->bell) { /* its last callback may be running */
        s->device->cu.StreamSynchronize(s->bell);
        s->device->cu.StreamDestroy(s->bell);
    }
    if (s->stream) {
        s->device->cu.StreamDestroy(s->stream);
    }
    free(s);
}

static int stream_create(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                         struct err *e)
{
    struct backend_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return err_set(e, ERR_NOMEM, "no memory for a stream");
    }
    /* CUDA's priorities count downwards: 0 is the lowest, -5 the highest */
    int value = d->priority_least - priority;
    value = value < d->priority_greatest ? d->priority_greatest : value;
    value = value > d->priority_least ? d->priority_least : value;
    s->device = d;
    int rc =
        CUDA_CALL(&d->cu, e, StreamCreateWithPriority, &s->stream, CU_STREAM_NON_BLOCKING, value);
    /* made now, because later it might wait for a kernel */
    if (rc == 0 && d->wake && d->cu.LaunchHostFunc) {
        rc = CUDA_CALL(&d->cu, e, StreamCreateWithPriority, &s->bell, CU_STREAM_NON_BLOCKING,
                       d->priority_least);
    }
    if (rc != 0) {
        stream_destroy(s);
        return rc;
    }
    *ret_stream = s;
    return 0;
}

static struct backend_range range_of(struct backend_ref ref, uint64_t size)
{
    return (struct backend_range){ref.block, ref.block->size, ref.offset, size};
}

static CUdeviceptr address_of(struct backend_ref ref)
{
    return ref.block->address + ref.offset;
}

static int stream_write(struct backend_stream *s, struct backend_ref dst, const void *host,
                        uint64_t size, struct err *e)
{
    const uint8_t *from = host;
    int rc = backend_range_check("write", range_of(dst, size), e);
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    for (uint64_t at = 0, n; at < size && rc == 0; at += n) {
        n = cuda_host_piece(s->device, from + at, size - at);
        rc = CUDA_CALL(&s->device->cu, e, MemcpyHtoDAsync, address_of(dst) + at, from + at, n,
                       s->stream);
    }
    return rc;
}

static int stream_prefetch(struct backend_stream *s, struct backend_ref ref, uint64_t size,
                           struct err *e)
{
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device->id};
    int rc = backend_range_check("prefetch", range_of(ref, size), e);
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    return rc == 0 ? CUDA_CALL(&s->device->cu, e, MemPrefetchAsync, address_of(ref), size, here, 0,
                               s->stream)
                   : rc;
}

#define FILL_PIECE (UINT64_C(64) << 10) /* bytes, a multiple of each pattern */

#if CUDA_VERSION >= 12080
/* ERR_UNSUPPORTED if one call cannot do it: the driver reads from device addresses, which differ
 * from the host's on some devices, and each write must lie in one registration. */
static int stream_write_batch(struct backend_stream *s, const struct backend_write *writes,
                              unsigned count, struct err *e)
{
    CUdeviceptr dst[BACKEND_WRITES_MAX];
    CUdeviceptr src[BACKEND_WRITES_MAX];
    size_t size[BACKEND_WRITES_MAX];
    size_t first = 0;
    size_t failed = 0;
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    bool able = s->device->cu.MemcpyBatchAsync && s->device->host_pointers;
    int rc = 0;
    for (unsigned i = 0; able && i < count && rc == 0; i++) {
        const struct backend_write *w = &writes[i];
        rc = backend_range_check("write", range_of(w->dst, w->size), e);
        dst[i] = address_of(w->dst);
        src[i] = (CUdeviceptr)(uintptr_t)w->host;
        size[i] = w->size;
        able = cuda_host_piece(s->device, w->host, w->size) == w->size;
    }
    if (!able) {
        return err_set(e, ERR_UNSUPPORTED, "these writes are for one call each");
    }
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    return rc == 0 ? CUDA_CALL(&s->device->cu, e, MemcpyBatchAsync, dst, src, size, count, &how,
                               &first, 1, &failed, s->stream)
                   : rc;
}
#else
#define stream_write_batch NULL
#endif

static int stream_read(struct backend_stream *s, void *host, struct backend_ref src, uint64_t size,
                       struct err *e)
{
    uint8_t *to = host;
    int rc = backend_range_check("read", range_of(src, size), e);
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    for (uint64_t at = 0, n; at < size && rc == 0; at += n) {
        n = cuda_host_piece(s->device, to + at, size - at);
        rc = CUDA_CALL(&s->device->cu, e, MemcpyDtoHAsync, to + at, address_of(src) + at, n,
                       s->stream);
    }
    return rc;
}

/* How many of `size` bytes behind `at` one call may name: imported memory of the host may consist
 * of several registrations, which have its addresses then. */
static uint64_t piece_of(const struct backend_device *d, struct backend_ref ref, uint64_t at,
                         uint64_t size)
{
    const void *host = (const void *)(uintptr_t)(address_of(ref) + at);
    return ref.block->host ? cuda_host_piece(d, host, size) : size;
}

static int stream_copy(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                       uint64_t size, struct err *e)
{
    int rc = backend_copy_check(range_of(dst, size), range_of(src, size), e);
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    for (uint64_t at = 0, n; at < size && rc == 0; at += n) {
        n = piece_of(s->device, src, at, piece_of(s->device, dst, at, size - at));
        rc = CUDA_CALL(&s->device->cu, e, MemcpyDtoDAsync, address_of(dst) + at,
                       address_of(src) + at, n, s->stream);
    }
    return rc;
}

/* The length of the shortest pattern that gives the same bytes when repeated. */
static size_t period(const uint8_t *pattern, size_t size)
{
    while (size > 1 && memcmp(pattern, pattern + size / 2, size / 2) == 0) {
        size /= 2;
    }
    return size;
}

/* Fills with a long pattern. The driver sets words of at most 4 bytes, so a longer pattern is
 * set column by column, which is slow. That is done for a first piece only; copies then double
 * it. */
static int long_set(struct backend_stream *s, CUdeviceptr at, const uint32_t *word, size_t n,
                    uint64_t size, struct err *e)
{
    const struct cuda_driver *cu = &s->device->cu;
    uint64_t done = size < FILL_PIECE ? size : FILL_PIECE;
    int rc = 0;
    for (size_t i = 0; i < n / 4 && rc == 0; i++) {
        rc = CUDA_CALL(cu, e, MemsetD2D32Async, at + 4 * i, n, word[i], 1, done / n, s->stream);
    }
    while (done < size && rc == 0) {
        uint64_t more = done < size - done ? done : size - done;
        rc = CUDA_CALL(cu, e, MemcpyDtoDAsync, at + done, at, more, s->stream);
        done += more;
    }
    return rc;
}

static int words_set(struct backend_stream *s, CUdeviceptr at, const uint8_t *pattern, size_t n,
                     uint64_t size, struct err *e)
{
    const struct cuda_driver *cu = &s->device->cu;
    uint32_t word[4] = {0};
    memcpy(word, pattern, n);
    switch (n) {
    case 1:
        return CUDA_CALL(cu, e, MemsetD8Async, at, (uint8_t)word[0], size, s->stream);
    case 2:
        return CUDA_CALL(cu, e, MemsetD16Async, at, (uint16_t)word[0], size / 2, s->stream);
    case 4:
        return CUDA_CALL(cu, e, MemsetD32Async, at, word[0], size / 4, s->stream);
    default:
        return long_set(s, at, word, n, size, e);
    }
}

static int stream_fill(struct backend_stream *s, struct backend_ref dst, const void *pattern,
                       size_t pattern_size, uint64_t size, struct err *e)
{
    int rc = backend_fill_check(range_of(dst, size), pattern_size, e);
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    for (uint64_t at = 0, n; at < size && rc == 0; at += n) {
        n = piece_of(s->device, dst, at, size - at); /* borders are multiples of the pattern */
        rc = words_set(s, address_of(dst) + at, pattern, period(pattern, pattern_size), n, e);
    }
    return rc;
}

static int stream_wait(struct backend_stream *s, struct backend_marker *m, struct err *e)
{
    return CUDA_CALL(&s->device->cu, e, StreamWaitEvent, s->stream, m->end, 0);
}

/* Commands start when they are enqueued, so there is nothing to do. */
static int stream_flush(struct backend_stream *s, struct err *e)
{
    (void)s;
    (void)e;
    return 0;
}

const struct backend_stream_ops cuda_stream_ops = {
    .create = stream_create,
    .destroy = stream_destroy,
    .write = stream_write,
    .read = stream_read,
    .copy = stream_copy,
    .fill = stream_fill,
    .launch = cuda_launch,
    .mark = cuda_mark,
    .wait = stream_wait,
    .flush = stream_flush,
    .write_batch = stream_write_batch,
    .prefetch = stream_prefetch,
};

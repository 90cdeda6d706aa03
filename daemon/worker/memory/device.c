#include "daemon/worker/memory/device.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"

#define CHECK_BYTES   65536u
#define CHECK_TIME_NS (20 * NS_PER_S)

bool device_is_lost(int code)
{
    return code == ERR_DEVICE_LOST || code == ERR_KERNEL_FAULT;
}

int device_is_urgent(const struct device *dev, unsigned stream)
{
    return stream + dev->urgent >= dev->stream_count;
}

int device_mark(struct device *dev, struct backend_stream *s, struct backend_marker **ret_marker,
                struct err *e)
{
    struct backend_marker *marker = NULL;
    int rc = dev->b->stream->mark(s, &marker, e);
    if (rc != 0) {
        return rc;
    }
    rc = dev->b->stream->flush(s, e);
    if (rc != 0) {
        dev->b->marker->release(marker);
        return rc;
    }
    *ret_marker = marker;
    return 0;
}

void device_arm(const struct device *dev, struct backend_marker *marker)
{
    if (dev->b->marker->arm != NULL) {
        (void)dev->b->marker->arm(marker, NULL);
    }
}

int device_mark_service(struct device *dev, struct backend_marker **ret_marker,
                        struct timeline_point *ret_point, struct err *e)
{
    if (device_mark(dev, dev->service, ret_marker, e) != 0) {
        e->code = ERR_DEVICE_LOST;
        return e->code;
    }
    memory_mark(&dev->memory, memory_service(&dev->memory), *ret_marker, ret_point);
    return 0;
}

/* Waits by polling, because the loop does not run while the device is being opened. */
static int wait_for(struct device *dev, struct backend_marker *marker, struct err *e)
{
    uint64_t until = clock_now_ns() + CHECK_TIME_NS;
    const struct timespec pause = {.tv_nsec = 200 * (long)NS_PER_US};
    for (;;) {
        enum backend_state state = dev->b->marker->state(marker, e);
        if (state == BACKEND_DONE) {
            return 0;
        }
        if (state == BACKEND_FAILED) {
            return e->code;
        }
        if (clock_now_ns() > until) {
            return err_set(e, ERR_TIMEOUT, "the check copy of %u bytes did not end", CHECK_BYTES);
        }
        (void)nanosleep(&pause, NULL);
    }
}

static int copy_round(struct device *dev, struct backend_ref ref, uint8_t *out, uint8_t *in,
                      struct err *e)
{
    const struct backend_stream_ops *ops = dev->b->stream;
    struct backend_marker *marker = NULL;
    for (unsigned i = 0; i < CHECK_BYTES; i++) {
        out[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    int rc = ops->write(dev->service, ref, out, CHECK_BYTES, e);
    rc = rc == 0 ? ops->read(dev->service, in, ref, CHECK_BYTES, e) : rc;
    rc = rc == 0 ? device_mark(dev, dev->service, &marker, e) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = wait_for(dev, marker, e);
    dev->b->marker->release(marker);
    if (rc == 0 && memcmp(out, in, CHECK_BYTES) != 0) {
        return err_set(e, ERR_DEVICE_LOST, "the check copy came back with wrong bytes");
    }
    return rc;
}

static int self_check(struct device *dev, struct err *e)
{
    struct memory_piece piece;
    uint8_t *host = malloc(2 * (size_t)CHECK_BYTES);
    if (host == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for the check of the device (%u bytes)",
                       2 * CHECK_BYTES);
    }
    const struct memory_ask ask = {.size = CHECK_BYTES, .stream = memory_service(&dev->memory)};
    int rc = memory_alloc(&dev->memory, &ask, &piece, e);
    if (rc == 0) { /* the loop does not run yet */
        memory_settle(&dev->memory);
        rc = memory_late(&dev->memory, &piece) == POOL_READY ? 0 : memory_refused(&dev->memory, e);
    }
    if (rc == 0) {
        rc = copy_round(dev, piece.ref, host, host + CHECK_BYTES, e);
        if (rc == 0) { /* after a failure a copy may still run: its memory is not freed */
            /* the piece holds only the bytes of this check */
            memory_cleaned(&piece);
            memory_free(&dev->memory, &piece);
        }
    }
    if (rc == 0) {
        free(host);
        return 0;
    }
    return err_wrap(e, "copying to the device and back");
}

/* Urgent jobs have a stream of their own, with a higher priority: they do not queue behind other
 * jobs. */
static int streams_open(struct device *dev, unsigned wanted, struct err *e)
{
    unsigned count = wanted != 0 ? wanted : dev->info.streams;
    count = count < 1 ? 1 : count;
    count = count >= DEVICE_STREAMS_MAX ? DEVICE_STREAMS_MAX - 1 : count;
    dev->urgent = 1;
    int rc = dev->b->stream->create(dev->d, 0, &dev->service, e);
    rc = rc == 0 ? dev->b->stream->create(dev->d, 0, &dev->scrub, e) : rc;
    for (int i = 0; rc == 0 && i < 2; i++) {
        rc = dev->b->stream->create(dev->d, 0, &dev->copy_stream[i], e);
    }
    while (rc == 0 && dev->stream_count < count + dev->urgent) {
        int priority = dev->stream_count < count ? 0 : 1;
        rc = dev->b->stream->create(dev->d, priority, &dev->stream[dev->stream_count], e);
        dev->stream_count += rc == 0;
    }
    return rc == 0 ? 0 : err_wrap(e, "stream %u", dev->stream_count);
}

uint64_t device_memory_default(const struct device *dev)
{
    return dev->info.memory - dev->info.memory / 16;
}

static int open_parts(struct device *dev, const struct device_options *options, struct err *e)
{
    dev->b->device->info(dev->d, &dev->info);
    dev->wakes = dev->b->device->wakes(dev->d);
    uint64_t limit =
        options->memory_limit != 0 ? options->memory_limit : device_memory_default(dev);
    limit = limit < dev->info.memory ? limit : dev->info.memory;
    struct backend_stream *all[DEVICE_STREAMS_MAX + 2];
    int rc = streams_open(dev, options->streams, e);
    if (rc == 0) {
        memcpy(all, dev->stream, dev->stream_count * sizeof all[0]);
        all[dev->stream_count] = dev->copy_stream[0];
        all[dev->stream_count + 1] = dev->service;
        const struct memory_device on = {.b = dev->b,
                                         .d = dev->d,
                                         .stream = all,
                                         .streams = dev->stream_count + 2,
                                         .scrub = dev->scrub,
                                         .wake = options->maps_later ? options->wake : NULL,
                                         .wake_data = options->wake_data};
        rc = memory_init(&dev->memory, &on, limit, dev->info.max_alloc, e);
        dev->memory.managed_limit = options->managed_limit;
        places_init(&dev->places, &dev->memory);
    }
    return rc == 0 ? self_check(dev, e) : rc;
}

int device_open(struct device *dev, const struct device_options *options, struct err *e)
{
    *dev = (struct device){.b = options->through != NULL ? options->through
                                                         : backend_find(options->backend)};
    if (dev->b == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "back end \"%s\" is not built in", options->backend);
    }
    struct err ignored = ERR_INIT; /* the device may open even if this call fails */
    if (dev->b->enumerate(options->options, &dev->count, &ignored) != 0) {
        dev->count = 0;
    }
    int rc = dev->b->device->open(options->index, options->options, options->wake,
                                  options->wake_data, &dev->d, e);
    if (rc != 0) {
        return err_wrap(e, "%s device %u", options->backend, options->index);
    }
    rc = open_parts(dev, options, e);
    return rc == 0 ? 0 : err_wrap(e, "%s device %u", options->backend, options->index);
}

void device_close(struct device *dev)
{
    if (dev->d == NULL) {
        return;
    }
    places_finish(&dev->places);
    memory_finish(&dev->memory);
    while (dev->stream_count > 0) {
        dev->b->stream->destroy(dev->stream[--dev->stream_count]);
    }
    if (dev->service != NULL) {
        dev->b->stream->destroy(dev->service);
    }
    if (dev->scrub != NULL) {
        dev->b->stream->destroy(dev->scrub);
    }
    for (int i = 0; i < 2; i++) {
        if (dev->copy_stream[i] != NULL) {
            dev->b->stream->destroy(dev->copy_stream[i]);
        }
    }
    dev->b->device->close(dev->d);
    dev->d = NULL;
}

/* Buffers of the fake daemon: memory. */
#include <stdlib.h>

#include "tests/unit/client/fake_int.h"

struct fake_buffer *fake_buffer_find(struct fake *f, uint64_t handle)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (f->buffers[i].handle == handle && handle != 0) {
            return &f->buffers[i];
        }
    }
    return NULL;
}

static struct fake_buffer *buffer_room(struct fake *f)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (f->buffers[i].handle == 0) {
            return &f->buffers[i];
        }
    }
    return NULL;
}

static void buffer_answer(struct slot *s, const struct fake_buffer *b)
{
    struct msg_buffer msg = {
        .handle = b->handle,
        .dtype = b->shape.dtype,
        .ndim = b->shape.ndim,
        .d0 = b->shape.d0,
        .d1 = b->shape.d1,
        .d2 = b->shape.d2,
        .d3 = b->shape.d3,
        .label = bytes_str("label"),
        .state = 1,
        .device = 1,
    };
    fake_answer(s, &schema_msg_buffer, &msg);
}

void fake_buffer_create(struct slot *s, const struct msg_buffer_create *msg)
{
    static const size_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8};
    uint64_t count = msg->d0 * (msg->ndim > 1 ? msg->d1 : 1);
    uint64_t size = msg->dtype < 12 ? count * sizes[msg->dtype] : 0;
    struct fake_buffer *b = buffer_room(s->fake);
    if (b == NULL || size > BUFFER_SIZE) {
        fake_answer_error(s, ERR_DEVICE_MEMORY, "no room");
        return;
    }
    *b = (struct fake_buffer){.handle = ++s->fake->next, .shape = *msg, .size = (size_t)size};
    b->shape.label = (struct bytes){0};
    b->data = calloc(1, b->size + 1);
    buffer_answer(s, b);
}

void fake_buffer_free(struct slot *s, uint64_t handle)
{
    struct fake_buffer *b = fake_buffer_find(s->fake, handle);
    struct msg_done done = {0};
    if (b == NULL) {
        fake_answer_error(s, ERR_STALE_HANDLE, "no such buffer");
        return;
    }
    free(b->data);
    *b = (struct fake_buffer){0};
    fake_answer(s, &schema_msg_done, &done);
}

void fake_buffer_info(struct slot *s, uint64_t handle)
{
    const struct fake_buffer *b = fake_buffer_find(s->fake, handle);
    if (b != NULL) {
        buffer_answer(s, b);
    } else {
        fake_answer_error(s, ERR_BAD_HANDLE, "no such buffer");
    }
}

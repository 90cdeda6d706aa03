#include <stdlib.h>

#include "tests/fakecuda/fake.h"

/* Handles look like addresses of a page that is never mapped. */
#define HANDLE_BASE UINT64_C(0x00fa4ec0000000)
#define HANDLE_STEP 16u

struct slot {
    struct object *object; /* NULL: dead */
    enum kind kind;
};

static struct {
    struct slot *slots;
    size_t count, capacity;
} table;

const char *kind_name(enum kind kind)
{
    static const char *const names[KIND_COUNT] = {
        [KIND_CONTEXT] = "context", [KIND_STREAM] = "stream",    [KIND_EVENT] = "event",
        [KIND_MODULE] = "module",   [KIND_LIBRARY] = "library",  [KIND_FUNCTION] = "function",
        [KIND_KERNEL] = "kernel",   [KIND_POOL] = "memory pool", [KIND_HANDLE] = "memory handle"};
    return names[kind];
}

void object_add(struct object *o, enum kind kind, struct context *context)
{
    if (table.count == table.capacity) {
        size_t capacity = table.capacity ? 2 * table.capacity : 256;
        struct slot *slots = realloc(table.slots, capacity * sizeof *slots);
        if (!slots) {
            abort();
        }
        table.slots = slots;
        table.capacity = capacity;
    }
    *o = (struct object){
        .kind = kind, .handle = HANDLE_BASE + HANDLE_STEP * table.count, .context = context};
    table.slots[table.count++] = (struct slot){.object = o, .kind = kind};
}

static struct slot *slot_of(uint64_t handle)
{
    uint64_t at = (handle - HANDLE_BASE) / HANDLE_STEP;
    if (handle < HANDLE_BASE || (handle - HANDLE_BASE) % HANDLE_STEP != 0 || at >= table.count) {
        return NULL;
    }
    return &table.slots[at];
}

void object_remove(struct object *o)
{
    struct slot *s = slot_of(o->handle);
    if (s) {
        s->object = NULL;
    }
}

void *object_peek(const void *handle, enum kind kind)
{
    const struct slot *s = slot_of((uint64_t)(uintptr_t)handle);
    return s && s->object && s->kind == kind ? s->object : NULL;
}

void *object_get(const void *handle, enum kind kind)
{
    const struct slot *s = slot_of((uint64_t)(uintptr_t)handle);
    if (!s) {
        misuse("%s: %p is no %s", call_name(), handle, kind_name(kind));
    } else if (s->kind != kind) {
        misuse("%s: %p is another handle (%s), no %s", call_name(), handle, kind_name(s->kind),
               kind_name(kind));
    } else if (!s->object) {
        misuse("%s: %s %p was destroyed before", call_name(), kind_name(kind), handle);
    } else {
        return s->object;
    }
    return NULL;
}

void object_each(enum kind kind, void (*each)(struct object *o, void *data), void *data)
{
    for (size_t i = 0; i < table.count; i++) {
        struct object *o = table.slots[i].object;
        if (o && table.slots[i].kind == kind) {
            each(o, data);
        }
    }
}

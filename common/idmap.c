#include "common/idmap.h"

#include <stdlib.h>

static uint32_t slot_of(uint64_t handle)
{
    return (uint32_t)(handle & (IDMAP_MAX - 1));
}

uint64_t idmap_generation(uint64_t handle)
{
    return handle >> IDMAP_SLOT_BITS;
}

uint64_t idmap_handle(uint64_t generation, uint32_t slot)
{
    return generation << IDMAP_SLOT_BITS | slot;
}

static uint64_t generation_after(uint64_t generation)
{
    return generation >= IDMAP_GENERATION_MAX ? 1 : generation + 1;
}

uint64_t idmap_generation_at(uint64_t wall_ns)
{
    uint64_t generation = wall_ns >> 12 & IDMAP_GENERATION_MAX;
    return generation > 0 ? generation : 1;
}

void idmap_init(struct idmap *m, uint32_t limit, uint64_t first_generation)
{
    *m = (struct idmap){.limit = limit < IDMAP_MAX ? limit : IDMAP_MAX,
                        .first_generation = first_generation > 0 ? first_generation : 1};
}

void idmap_finish(struct idmap *m)
{
    free(m->slots);
    *m = (struct idmap){0};
}

static bool grow(struct idmap *m, uint32_t need)
{
    if (need <= m->capacity) {
        return true;
    }
    uint32_t capacity = m->capacity > 0 ? m->capacity : 16;
    while (capacity < need) {
        capacity = capacity > UINT32_MAX / 2 ? UINT32_MAX : capacity * 2;
    }
    struct idmap_slot *slots = realloc(m->slots, (size_t)capacity * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    m->slots = slots;
    m->capacity = capacity;
    return true;
}

/* The list of free slots is linked both ways, so any slot is unlinked in O(1). */
static void link_free(struct idmap *m, uint32_t slot)
{
    struct idmap_slot *s = &m->slots[slot];
    s->next_free = m->first_free;
    s->prev_free = 0;
    if (s->next_free != 0) {
        m->slots[s->next_free - 1].prev_free = slot + 1;
    }
    m->first_free = slot + 1;
}

static void unlink_free(struct idmap *m, uint32_t slot)
{
    struct idmap_slot *s = &m->slots[slot];
    if (s->prev_free != 0) {
        m->slots[s->prev_free - 1].next_free = s->next_free;
    } else {
        m->first_free = s->next_free;
    }
    if (s->next_free != 0) {
        m->slots[s->next_free - 1].prev_free = s->prev_free;
    }
    s->next_free = s->prev_free = 0;
}

static void append_free(struct idmap *m)
{
    m->slots[m->used] = (struct idmap_slot){.generation = m->first_generation};
    m->used++;
    link_free(m, m->used - 1);
}

uint64_t idmap_add(struct idmap *m, void *value)
{
    if (m->live >= m->limit) {
        return 0;
    }
    if (m->first_free == 0) {
        if (!grow(m, m->used + 1)) {
            return 0;
        }
        append_free(m);
    }
    uint32_t slot = m->first_free - 1;
    struct idmap_slot *s = &m->slots[slot];
    unlink_free(m, slot);
    s->value = value;
    m->live++;
    return idmap_handle(s->generation, slot);
}

int idmap_enter(struct idmap *m, void *value, const char *things, const char *help,
                uint64_t *ret_handle, struct err *e)
{
    bool full = m->live >= m->limit;
    uint64_t handle = idmap_add(m, value);
    if (handle != 0) {
        *ret_handle = handle;
        return 0;
    }
    return full ? err_set(e, ERR_LIMIT, "the daemon has %u %s, as many as it has handles for: %s",
                          m->live, things, help)
                : err_set(e, ERR_NOMEM, "no memory for the table of %s", things);
}

bool idmap_restore(struct idmap *m, uint64_t handle, void *value)
{
    uint32_t slot = slot_of(handle);
    if (idmap_generation(handle) == 0 || m->live >= m->limit || slot >= m->limit ||
        !grow(m, slot + 1)) {
        return false;
    }
    while (m->used <= slot) {
        append_free(m);
    }
    struct idmap_slot *s = &m->slots[slot];
    if (s->value != NULL) {
        return false;
    }
    unlink_free(m, slot);
    *s = (struct idmap_slot){.value = value,
                             .generation = idmap_generation(handle),
                             .put_back = idmap_generation(handle)};
    m->live++;
    return true;
}

void *idmap_get(const struct idmap *m, uint64_t handle)
{
    uint32_t slot = slot_of(handle);
    if (slot >= m->used || m->slots[slot].generation != idmap_generation(handle)) {
        return NULL;
    }
    return m->slots[slot].value;
}

enum idmap_state idmap_state(const struct idmap *m, uint64_t handle)
{
    if (idmap_get(m, handle) != NULL) {
        return IDMAP_LIVE;
    }
    uint32_t slot = slot_of(handle);
    uint64_t generation = idmap_generation(handle);
    if (generation == 0 || slot >= m->limit) {
        return IDMAP_UNKNOWN;
    }
    /* A handle from an earlier start of the daemon has a smaller generation than new slots get. */
    uint64_t current = slot < m->used ? m->slots[slot].generation : m->first_generation;
    return generation < current ? IDMAP_STALE : IDMAP_UNKNOWN;
}

bool idmap_left_behind(const struct idmap *m, uint64_t handle)
{
    uint32_t slot = slot_of(handle);
    uint64_t generation = idmap_generation(handle);
    bool put_back = slot < m->used && m->slots[slot].put_back == generation;
    return slot < m->limit && generation > 0 && generation < m->first_generation && !put_back;
}

void idmap_disown(struct idmap *m, uint64_t handle, uint64_t owner)
{
    if (idmap_get(m, handle) != NULL) {
        struct idmap_slot *s = &m->slots[slot_of(handle)];
        s->disowned = s->generation;
        s->owner = owner;
    }
}

bool idmap_freed_of(const struct idmap *m, uint64_t handle, uint64_t owner)
{
    uint32_t slot = slot_of(handle);
    uint64_t generation = idmap_generation(handle);
    const struct idmap_slot *s = slot < m->used ? &m->slots[slot] : NULL;
    if (s != NULL && generation == s->disowned) {
        return owner == s->owner;
    }
    return idmap_state(m, handle) == IDMAP_STALE && (s == NULL || generation > s->disowned);
}

void *idmap_remove(struct idmap *m, uint64_t handle)
{
    void *value = idmap_get(m, handle);
    if (value == NULL) {
        return NULL;
    }
    uint32_t slot = slot_of(handle);
    struct idmap_slot *s = &m->slots[slot];
    s->value = NULL;
    s->generation = generation_after(s->generation);
    /* A restored handle is older than this start. The slot's next handle must not look like one of
     * an earlier start. */
    if (s->generation < m->first_generation) {
        s->generation = m->first_generation;
    }
    link_free(m, slot);
    m->live--;
    return value;
}

void *idmap_next(const struct idmap *m, uint32_t *cursor, uint64_t *ret_handle)
{
    uint32_t slot = *cursor;
    while (slot < m->used && m->slots[slot].value == NULL) {
        slot++;
    }
    if (m->walked != NULL) {
        *m->walked += 1 + (slot - *cursor) / IDMAP_SPARSE;
    }
    *cursor = slot < m->used ? slot + 1 : slot;
    if (slot >= m->used) {
        return NULL;
    }
    if (ret_handle != NULL) {
        *ret_handle = idmap_handle(m->slots[slot].generation, slot);
    }
    return m->slots[slot].value;
}

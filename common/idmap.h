/*
 * Handles with generations. A handle is 44 bits of generation and 20 of slot; a freed slot's
 * generation grows, so an old handle differs from an unknown one. 0 is never a handle.
 * Thread: one owner. O(1) for every operation but growth. Never holds more than `limit` entries.
 */
#ifndef COMMON_IDMAP_H
#define COMMON_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define IDMAP_SLOT_BITS      20u
#define IDMAP_SPARSE         16u /* empty slots that cost idmap_next as much as one entry */
#define IDMAP_MAX            (1u << IDMAP_SLOT_BITS) /* entries of a map at most */
#define IDMAP_GENERATION_MAX ((UINT64_C(1) << 44) - 1)

struct idmap_slot {
    void *value; /* not owned; NULL if free */
    uint64_t generation;
    uint64_t put_back;  /* the last generation of idmap_restore, 0: none */
    uint64_t disowned;  /* the last generation of idmap_disown, 0: none */
    uint64_t owner;     /* of generation `disowned` */
    uint32_t next_free; /* slot + 1; 0: none */
    uint32_t prev_free; /* slot + 1; 0: none */
};

struct idmap {
    struct idmap_slot *slots;
    uint32_t used;     /* slots ever used */
    uint32_t capacity; /* slots allocated */
    uint32_t limit;
    uint32_t live;
    uint32_t first_free; /* slot + 1 */
    uint64_t first_generation;
    uint64_t *walked; /* idmap_next adds its cost here: 1 for an entry and for IDMAP_SPARSE empty
                         slots; NULL: not counted. Not owned, set after idmap_init. */
};

enum idmap_state { IDMAP_LIVE, IDMAP_STALE, IDMAP_UNKNOWN };

/* limit: at most IDMAP_MAX. first_generation (1 … IDMAP_GENERATION_MAX): the generation of new
 * slots. Each start of a process gives a greater one than any generation of earlier starts, so that
 * their handles are stale and never name another entry. */
void idmap_init(struct idmap *m, uint32_t limit, uint64_t first_generation);
/* A first generation for this start of a process: the wall clock in units of 4096 ns. A slot's
 * generation outruns it only if the slot is always used and freed more than once in 4 us. It wraps
 * after 2.2 years. */
uint64_t idmap_generation_at(uint64_t wall_ns);
void idmap_finish(struct idmap *m); /* values are not touched */
/* 0 when the limit is reached or memory is out. value must not be NULL. */
uint64_t idmap_add(struct idmap *m, void *value);
/* As idmap_add, with an error: ERR_LIMIT, whose text names the limit, `things` ("kernels") and
 * `help` ("unload modules"), or ERR_NOMEM. */
int idmap_enter(struct idmap *m, void *value, const char *things, const char *help,
                uint64_t *ret_handle, struct err *e);
/* Puts a value back under its former handle (adoption); false if the slot is in use. */
bool idmap_restore(struct idmap *m, uint64_t handle, void *value);
void *idmap_get(const struct idmap *m, uint64_t handle); /* NULL if not live */
uint64_t idmap_generation(uint64_t handle);
uint64_t idmap_handle(uint64_t generation, uint32_t slot);
enum idmap_state idmap_state(const struct idmap *m, uint64_t handle);
/* Whether the handle is from an earlier start and was not restored. */
bool idmap_left_behind(const struct idmap *m, uint64_t handle);
/* Records the owner of a live handle that is about to be removed. For other owners the handle will
 * look as if it never existed (idmap_freed_of). */
void idmap_disown(struct idmap *m, uint64_t handle, uint64_t owner);
/* Whether the handle is stale and not recorded as another owner's. */
bool idmap_freed_of(const struct idmap *m, uint64_t handle, uint64_t owner);
void *idmap_remove(struct idmap *m, uint64_t handle); /* the value, NULL if not live */
/* Iterates over live entries: start with *cursor = 0; NULL at the end. The entry just returned may
 * be removed. */
void *idmap_next(const struct idmap *m, uint32_t *cursor, uint64_t *ret_handle);

#endif

/*
 * A source of pages that makes its calls later, over the fake one: calls go to a log, and the test
 * makes as many of them as it likes. Calls fail as the test chooses; those that depend on a failed
 * one are left out, as the worker's mapper does.
 */
#ifndef TESTS_UNIT_POOL_LATE_SOURCE_H
#define TESTS_UNIT_POOL_LATE_SOURCE_H

#include "daemon/pool/late.h"
#include "tests/unit/pool/fake_source.h"

#define LATE_CALLS   262144u
#define LATE_HANDLES 65536u

enum late_kind { LATE_CREATE, LATE_MAP, LATE_UNMAP, LATE_ACCESS, LATE_CLEAR, LATE_DESTROY };

struct late_call {
    enum late_kind kind;
    uint64_t at, bytes, handle;
};

struct late_source {
    struct fake_source fake; /* makes the calls */
    struct pool_source source;
    struct pool_pages pages;
    struct pool *pool;      /* set by the test: gets the reports */
    struct late_call *call; /* by number % LATE_CALLS */
    uint64_t issued, done;
    uint64_t handles;
    uint64_t *handle; /* by name: the fake's; 0: it could not be made */
    bool *bad;        /* by slot: a handle should be mapped there, and is not */
    bool *stuck;      /* by slot: what is mapped there could not be unmapped */
    uint64_t failures;
    /* Does this call fail? NULL: none does. */
    bool (*fails)(const struct late_call *call, uint64_t number);
    bool (*clears)(void); /* is memory cleared? NULL: always */
};

void late_init(struct late_source *l, uint64_t capacity, uint64_t page, uint64_t handle_max);
void late_run(struct late_source *l, uint64_t calls); /* makes so many calls, and reports */
void late_run_all(struct late_source *l);
void late_finish(struct late_source *l); /* as fake_finish */

#endif

/*
 * A set of snapshots: those of the devices that one request names, and their tables (snapshot.h).
 * snapshot.c owns the sets. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_SNAPSHOT_SET_H
#define FRONT_VIEWS_SNAPSHOT_SET_H

#include <stdint.h>

#include "common/memfd.h"
#include "daemon/front/model/front.h"
#include "proto/snapshot.h"

struct request;

enum snapshot_state { SNAPSHOT_ASKED, SNAPSHOT_TAKEN, SNAPSHOT_MISSING };

/* The snapshot of one device. */
struct snapshot {
    enum snapshot_state state;
    const struct device *device;
    struct memfd memory; /* owned, shared with the worker; of a TAKEN one */
    struct snapshot_view view;
    char note[200]; /* why it is MISSING */
};

struct snapshot_set {
    struct snapshot_set *next; /* newest first */
    uint64_t number;
    uint64_t session;        /* id of its session, which may have ended */
    struct tenant *tenant;   /* the tenant to which the set is charged */
    struct request *request; /* owned; NULL: answered */
    uint64_t timeout_ns;
    uint64_t until_ns; /* deadline of the answer; once answered, when the set is dropped */
    unsigned count;
    struct snapshot snapshot[];
};

int snapshot_table_numbers(const struct snapshot_set *set, struct capbuf *out, struct err *e);
int snapshot_table_part(const struct front *f, const struct session *s, const struct snapshot *p,
                        const struct msg_pool_read *m, struct capbuf *out, struct err *e);

#endif

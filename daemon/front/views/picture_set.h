/*
 * A picture of the pools of several devices, and its tables: a client sees what it may
 * (picture.h). picture.c owns the sets. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_PICTURE_SET_H
#define FRONT_VIEWS_PICTURE_SET_H

#include <stdint.h>

#include "common/memfd.h"
#include "daemon/front/model/front.h"
#include "proto/picture.h"

struct request;

enum picture_state { PICTURE_ASKED, PICTURE_TAKEN, PICTURE_MISSING };

/* One device's. */
struct picture {
    enum picture_state state;
    const struct device *device;
    struct memfd memory; /* the worker's, TAKEN */
    struct picture_view view;
    char note[200]; /* why it is MISSING */
};

struct picture_set {
    struct picture_set *next; /* newest first */
    uint64_t number;
    uint64_t session;        /* whose, by id: it may be gone */
    struct tenant *tenant;   /* which counts it */
    struct request *request; /* that waits, owned; NULL: answered */
    uint64_t timeout_ns;
    uint64_t until_ns; /* when the answer goes out; once it did, when the picture goes */
    unsigned count;
    struct picture picture[]; /* of each device that was asked for */
};

int picture_table_numbers(const struct front *f, const struct picture_set *set, struct capbuf *out,
                          struct err *e);
int picture_table_part(const struct front *f, const struct session *s, const struct picture *p,
                       const struct msg_pool_read *m, struct capbuf *out, struct err *e);

#endif

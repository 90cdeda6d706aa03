/*
 * Pictures of the devices' memory pools. Who asks for one waits, the loop does not: every worker is
 * asked, and the answer goes out when all have told or the time is over, saying who did not. The
 * picture stays for a while, so that its pieces and events can be read part by part.
 *
 * A tenant sees its own pieces and events; those of others come as one piece without a name where
 * they touch, unless it may see all (rights.h). Thread: the loop's.
 */
#ifndef FRONT_VIEWS_PICTURE_H
#define FRONT_VIEWS_PICTURE_H

#include "common/memfd.h"
#include "daemon/front/model/front.h"
#include "daemon/front/requests/requests.h"
#include "proto/picture.h"

#define PICTURES_MAX        64u /* at once */
#define PICTURES_TENANT_MAX 8u  /* of them one tenant's: then its oldest one goes */
#define PICTURE_ASKED_MAX   4u  /* asks that a worker has not answered */

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
    uint64_t session; /* whose, by id: it may be gone */
    const struct tenant *tenant;
    struct request *request; /* that waits, owned; NULL: answered */
    uint64_t timeout_ns;
    uint64_t until_ns; /* when the answer goes out; once it did, when the picture goes */
    unsigned count;
    struct picture picture[]; /* of each device that was asked for */
};

/* POOL_TAKE: takes the request, answers it later. */
void picture_take(struct front *f, struct session *s, struct request *r);
/* POOL_READ */
int request_pool_read(struct request_context *c, struct err *e);
/* A worker told. The descriptor (-1: none) is the receiver's. */
void picture_told(struct front *f, struct device *d, const struct msg_w_picture *m, int fd);
void picture_device_lost(struct front *f, struct device *d);
/* Answers and forgets what is due; says when the next is. */
void picture_watch(struct front *f, uint64_t now_ns);
void picture_finish_all(struct front *f);

/* ---- picture_table.c: who asks sees what it may */

int picture_table_numbers(const struct front *f, const struct picture_set *set, struct capbuf *out,
                          struct err *e);
int picture_table_part(const struct front *f, const struct session *s, const struct picture *p,
                       const struct msg_pool_read *m, struct capbuf *out, struct err *e);

#endif

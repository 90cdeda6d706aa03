/*
 * A worker with little memory, seen by its front: on simulated devices, with pages and without, and
 * on OpenCL. Its buffers are of ROOM_BYTES each. Their words tell the buffer and the round of
 * writing.
 */
#ifndef TEST_WORKER_ROOMS_H
#define TEST_WORKER_ROOMS_H

#include "tests/unit/worker/fake_front.h"

#define ROOM_BYTES  (1u << 20)
#define ROOMS       3 /* kinds of device */
#define TENANTS_MAX 8u

/* Twelve MiB on the device, and as much as `spill` (bytes) on the host. false: there is no such
 * device here. */
bool room_start(struct fake *f, int which, const char *spill);
/* As above, with other options of its back end; NULL: the same ones. */
bool room_start_with(struct fake *f, int which, const char *options, const char *spill);
/* Words of a buffer after `round` times of writing. */
void room_words(uint8_t *at, uint64_t buffer, unsigned round);
void room_write(struct fake *f, uint64_t buffer, unsigned round);
void room_check(struct fake *f, uint64_t buffer, unsigned round);
/* Writes `count` buffers of a tenant once, from `first` on; and checks them. */
void room_fill(struct fake *f, uint64_t tenant, uint64_t first, unsigned count);
void room_check_all(struct fake *f, uint64_t tenant, uint64_t first, unsigned count);
/* Runs a job with `bytes` of temporaries. Returns the code of its end. */
int room_temporaries(struct fake *f, uint64_t tenant, uint64_t job, uint64_t bytes,
                     struct msg_w_done *ret_done);

void room_quota(struct fake *f, uint64_t tenant, const char *name, uint64_t hard, uint64_t soft,
                uint64_t guaranteed);
/* Asks the worker for its tenants. Returns its report about this one, which is below TENANTS_MAX.
 */
const struct msg_w_tenant *room_use(struct fake *f, uint64_t tenant);

#endif

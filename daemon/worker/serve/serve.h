/* The server: what the worker does with each frame of the front, and what it reports. The only
 * module that knows all parts. Thread: the loop's. */
#ifndef WORKER_SERVE_SERVE_H
#define WORKER_SERVE_SERVE_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/worker/copy/pinning.h"
#include "daemon/worker/copy/transfer.h"
#include "daemon/worker/run/coalesce.h"
#include "daemon/worker/run/completion.h"
#include "daemon/worker/run/pump.h"
#include "daemon/worker/serve/answer.h"
#include "daemon/worker/serve/beat.h"
#include "daemon/worker/serve/budget.h"
#include "daemon/worker/serve/channel.h"
#include "daemon/worker/serve/creations.h"
#include "daemon/worker/serve/snapshot.h"
#include "daemon/worker/serve/upkeep.h"
#include "daemon/worker/spill/waiting.h"

#define EXIT_LOST 70 /* exit code: the device or a kernel has ended the use of this process */

struct server {
    struct channel channel;
    struct pump pump;
    struct beat beat;
    struct device device;
    struct staging staging;
    struct pinning pinning; /* begun by server_start, finished by main like staging */
    struct buffers buffers;
    struct releases releases;   /* of memory, arenas and modules */
    struct registrar registrar; /* of arenas, and of memory for buffers on the host */
    struct arenas arenas;
    struct modules modules;
    struct ledger ledger;
    struct executor executor;
    struct coalesce coalesce;
    struct completion completion;
    struct copies copies;
    struct transfers transfers;
    struct snapshot_maker snapshot;
    struct spill spill;
    struct budget budget;
    struct upkeep upkeep;
    struct waiting waiting;
    struct creations creations;
    struct inventory inventory;
    uv_loop_t *loop;
    const char *build;
    bool ended; /* no further frame is served */
};

/* Connects the parts; device, staging and beat must be initialised. Sends W_READY. Blocks while
 * staging memory is pinned, for at most PINNING_BRIEF_NS. */
int server_start(struct server *s, uv_loop_t *loop, int channel_fd, const char *build,
                 uint64_t spill_limit, struct err *e);
bool server_idle(struct server *s); /* is nothing in flight, and no thread in a driver? */
/* Requires server_idle. Frees everything except device, spill, staging, beat, copies, pump and
 * pinning. */
void server_finish(struct server *s);

#endif

#include "daemon/worker/run/ledger.h"

#include <inttypes.h>

#include "common/hash.h"

bool ledger_full(const struct ledger *l)
{
    return HASH_COUNT(l->by_id) >= LEDGER_MAX;
}

bool ledger_add(struct ledger *l, struct job *j)
{
    HASH_ADD_BYHASHVALUE(hh, l->by_id, id, sizeof j->id, hash_number(j->id), j);
    return HASH_ENTERED(j->hh);
}

struct job *ledger_find(const struct ledger *l, uint64_t id)
{
    struct job *j = NULL;
    HASH_FIND_BYHASHVALUE(hh, l->by_id, &id, sizeof id, hash_number(id), j);
    return j;
}

int ledger_after(const struct ledger *l, struct job *j, struct err *e)
{
    unsigned known = 0;
    int rc = 0;
    for (unsigned i = 0; i < j->after_count; i++) {
        if (ledger_find(l, j->after[i]) != NULL) {
            j->after[known++] = j->after[i];
        } else {
            rc = err_set(e, ERR_PROTOCOL,
                         "job %" PRIu64 " has to run after job %" PRIu64
                         ", which the worker did not get before",
                         j->id, j->after[i]);
        }
    }
    j->after_count = known;
    return rc;
}

void ledger_retire(struct ledger *l, struct job *j)
{
    HASH_DEL(l->by_id, j);
    job_destroy(j);
}

void ledger_finish(struct ledger *l)
{
    struct job *j;
    struct job *next;
    HASH_ITER(hh, l->by_id, j, next)
    {
        HASH_DEL(l->by_id, j);
        job_destroy(j);
    }
}

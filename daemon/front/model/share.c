#include "daemon/front/model/share.h"

#include <stdlib.h>
#include <utlist.h>

static struct stake *stake_make(struct tenant *t, struct device *d)
{
    struct stake *k = calloc(1, sizeof *k);
    struct line *l = device_line(d);
    unsigned seats = 0;
    while (k != NULL && seats < CLASS_COUNT &&
           tournament_join(&l->stakes[seats], &k->of[seats].seat)) {
        seats++;
    }
    if (k != NULL && seats == CLASS_COUNT) {
        k->tenant = t;
        k->line = l;
        k->device = device_shown(d);
        return k;
    }
    while (seats > 0) {
        seats--;
        tournament_leave(&l->stakes[seats], k->of[seats].seat);
    }
    free(k);
    return NULL;
}

bool share_join(struct share *s, struct tenant *t, struct device *d)
{
    struct stake **k = &s->stake[device_shown(d)];
    *k = *k != NULL ? *k : stake_make(t, d);
    return *k != NULL;
}

void share_look(struct share *s)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        struct stake *k = s->stake[i];
        if (k != NULL && k->due.in) {
            agenda_set(&k->line->capped, &k->due, 0, k);
        }
    }
}

void share_finish(struct share *s)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        struct stake *k = s->stake[i];
        for (unsigned class = 0; k != NULL && class < CLASS_COUNT; class ++) {
            tournament_leave(&k->line->stakes[class], k->of[class].seat);
            backlog_finish(&k->of[class].work);
        }
        if (k != NULL && k->spent_ns > 0) {
            DL_DELETE2(k->line->spenders, k, spender_prev, spender_next);
        }
        if (k != NULL) {
            agenda_drop(&k->line->capped, &k->due);
        }
        free(k);
        s->stake[i] = NULL;
    }
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        backlog_finish(&s->any_work[class]);
    }
}

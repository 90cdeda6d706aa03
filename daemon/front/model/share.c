#include "daemon/front/model/share.h"

#include <stdlib.h>
#include <utlist.h>

bool share_join(struct share *s, struct tenant *t, struct device *d)
{
    struct stake **k = &s->stake[device_shown(d)];
    if (*k == NULL) {
        *k = calloc(1, sizeof **k);
    }
    if (*k != NULL) {
        (*k)->tenant = t;
        (*k)->line = device_line(d);
        (*k)->device = device_shown(d);
    }
    return *k != NULL;
}

void share_finish(struct share *s)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        struct stake *k = s->stake[i];
        for (unsigned class = 0; k != NULL && class < CLASS_COUNT; class ++) {
            heap_drop(&k->line->stakes[class], &k->of[class].entry);
            backlog_finish(&k->of[class].work);
        }
        if (k != NULL && k->spent_ns > 0) {
            DL_DELETE2(k->line->spenders, k, spender_prev, spender_next);
        }
        free(k);
        s->stake[i] = NULL;
    }
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        backlog_finish(&s->any_work[class]);
    }
}

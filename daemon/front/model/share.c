#include "daemon/front/model/share.h"

#include <stdlib.h>

bool share_join(struct share *s, struct tenant *t, struct device *d)
{
    struct stake **k = &s->stake[d->index];
    if (*k == NULL) {
        *k = calloc(1, sizeof **k);
    }
    if (*k != NULL) {
        (*k)->tenant = t;
        (*k)->line = &d->line;
        (*k)->device = d->index;
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
        free(k);
        s->stake[i] = NULL;
    }
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        backlog_finish(&s->any_work[class]);
    }
}

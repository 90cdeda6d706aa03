#include "daemon/front/model/share.h"

#include <stdlib.h>

bool share_join(struct share *s, const struct device *d)
{
    struct stake **k = &s->stake[d->index];
    if (*k == NULL) {
        *k = calloc(1, sizeof **k);
    }
    if (*k != NULL) {
        (*k)->share = s;
    }
    return *k != NULL;
}

void share_finish(struct share *s)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        free(s->stake[i]);
        s->stake[i] = NULL;
    }
}

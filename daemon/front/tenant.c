#include "daemon/front/tenant.h"

#include <stdio.h>
#include <stdlib.h>

struct tenant *tenant_obtain(struct tenant **table, uint32_t uid)
{
    struct tenant *t = NULL;
    HASH_FIND(hh, *table, &uid, sizeof uid, t);
    if (t != NULL) {
        return t;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    t->uid = uid;
    (void)snprintf(t->name, sizeof t->name, "uid:%u", (unsigned)uid);
    HASH_ADD(hh, *table, uid, sizeof t->uid, t);
    return t;
}

static void strikes_destroy(struct tenant *t)
{
    struct strike *s;
    struct strike *next;
    HASH_ITER(hh, t->strikes, s, next)
    {
        HASH_DEL(t->strikes, s);
        free(s);
    }
}

void tenant_destroy_all(struct tenant **table)
{
    struct tenant *t;
    struct tenant *next;
    HASH_ITER(hh, *table, t, next)
    {
        HASH_DEL(*table, t);
        strikes_destroy(t);
        free(t);
    }
}

uint64_t tenant_key(const struct tenant *t)
{
    return t != NULL ? (uint64_t)t->uid + 1 : 0;
}

unsigned tenant_strike(struct tenant *t, struct hash kernel)
{
    struct strike *s = NULL;
    HASH_FIND(hh, t->strikes, &kernel, sizeof kernel, s);
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        if (s == NULL) {
            return 0;
        }
        s->kernel = kernel;
        HASH_ADD(hh, t->strikes, kernel, sizeof s->kernel, s);
    }
    return ++s->count;
}

bool tenant_quarantined(const struct tenant *t, struct hash kernel)
{
    struct strike *s = NULL;
    HASH_FIND(hh, t->strikes, &kernel, sizeof kernel, s);
    return s != NULL && s->count >= STRIKES_MAX;
}

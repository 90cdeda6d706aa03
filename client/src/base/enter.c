#include "client/src/base/enter.h"

int client_enter_closing(struct gpud_client *c, struct err *e)
{
    if (c == NULL) {
        return err_set(e, ERR_INVALID, "the client is NULL");
    }
    if (!origin_here(&c->origin)) {
        return err_set(e, ERR_FORKED, "client was opened by process %d: open one in the child",
                       (int)c->origin.pid);
    }
    (void)pthread_mutex_lock(&c->lock);
    return 0;
}

int client_enter(struct gpud_client *c, struct err *e)
{
    int rc = client_enter_closing(c, e);
    if (rc == 0 && c->closing) {
        (void)pthread_mutex_unlock(&c->lock);
        rc = err_set(e, ERR_CLOSED, "client is closed");
    }
    return rc;
}

void client_leave(struct gpud_client *c)
{
    (void)pthread_mutex_unlock(&c->lock);
}

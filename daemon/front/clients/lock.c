/* The listener's mutex. Unlocking it wakes the loop if wake_pending is set. */
#include "daemon/front/clients/listener_int.h"

void listener_lock(struct listener *l)
{
    (void)pthread_mutex_lock(&l->lock);
}

void listener_unlock(struct listener *l)
{
    bool wake = l->wake_pending && !l->waked;
    l->wake_pending = false;
    l->waked = l->waked || wake;
    (void)pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
}

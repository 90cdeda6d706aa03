/* The listener's mutex: what was done under it wakes the loop when it is let go of. */
#include "daemon/front/clients/listener_int.h"

void listener_lock(struct listener *l)
{
    (void)pthread_mutex_lock(&l->lock);
}

void listener_unlock(struct listener *l)
{
    bool wake = l->wake_due && !l->waked;
    l->wake_due = false;
    l->waked = l->waked || wake;
    (void)pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
}

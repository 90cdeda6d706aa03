#include "client/src/session/callbacks.h"

#include <stdlib.h>

#include "client/src/base/events.h"
#include "client/src/objects/job.h"

static bool event_run(struct gpud_client *c)
{
    struct event *event = c->event_first;
    if (event == NULL) {
        return false;
    }
    c->event_first = event->next;
    if (c->event_first == NULL) {
        c->event_last = NULL;
    }
    gpud_event_cb cb = c->event_cb;
    void *user = c->event_user;
    client_arm(c);
    (void)pthread_mutex_unlock(&c->lock);
    if (cb != NULL) {
        gpud_event shown = {
            .size = sizeof shown,
            .kind = event->kind,
            .buffer = event->buffer,
            .text = event->text,
        };
        cb(c, &shown, user);
    }
    free(event);
    (void)pthread_mutex_lock(&c->lock);
    return true;
}

void client_callbacks(struct gpud_client *c)
{
    while (event_run(c) || job_callback_run(c)) {
    }
}

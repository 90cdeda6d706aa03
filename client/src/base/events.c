#include "client/src/base/events.h"

#include <stdlib.h>

#include "client/src/base/text.h"

void client_arm(struct gpud_client *c)
{
    conn_ready_set(&c->conn, c->ended.first != NULL || c->event_first != NULL);
}

void client_event(struct gpud_client *c, int kind, gpud_buffer buffer, const char *text)
{
    if (c->event_cb == NULL) {
        return;
    }
    struct event *event = malloc(sizeof *event);
    if (event == NULL) {
        return; /* an event is only a hint: later calls report the state */
    }
    event->next = NULL;
    event->kind = kind;
    event->buffer = buffer;
    text_copy(event->text, sizeof event->text, bytes_str(text));
    if (c->event_last != NULL) {
        c->event_last->next = event;
    } else {
        c->event_first = event;
    }
    c->event_last = event;
}

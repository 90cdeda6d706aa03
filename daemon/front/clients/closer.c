/* Ends connections in a thread that stops NNG's operations on them. */
#include <stdlib.h>

#include "daemon/front/clients/listener_int.h"

void connection_finish(struct connection *c)
{
    nng_stream_close(c->stream);
    nng_aio_stop(c->recv);
    nng_aio_stop(c->send);
    nng_stream_free(c->stream);
    nng_aio_free(c->recv);
    nng_aio_free(c->send);
    sp_reader_finish(&c->reader);
    request_destroy(c->pending);
    c->pending = NULL;
    free(c->input);
    free(c->output);
    c->input = NULL;
    c->output = NULL;
}

static void close_one(struct listener *l)
{
    struct connection *c = l->closing_list;
    DL_DELETE(l->closing_list, c);
    listener_unlock(l);
    connection_finish(c);
    listener_lock(l);
    writer_drop(c);
    (void)connection_step(c, CONNECTION_ENDED);
    l->alive--;
    (void)pthread_cond_signal(&l->ended);
}

/* A thread of its own: NNG's threads would wait for themselves, and the loop must not block. */
void *connections_closer(void *listener)
{
    struct listener *l = listener;
    listener_lock(l);
    while (l->closer_runs) {
        if (l->closing_list != NULL) {
            close_one(l);
            listener_unlock(l); /* wakes the loop */
            listener_lock(l);
        } else {
            (void)pthread_cond_wait(&l->to_close, &l->lock);
        }
    }
    listener_unlock(l);
    return NULL;
}

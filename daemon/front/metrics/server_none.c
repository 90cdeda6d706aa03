/* In place of server.c, in a build without libmicrohttpd. */
#include "daemon/front/metrics/server.h"

int metrics_server_start(const struct metrics_options *options, struct metrics_server **ret_server,
                         struct err *e)
{
    (void)options;
    (void)ret_server;
    return err_set(e, ERR_UNSUPPORTED,
                   "this gpud was built without libmicrohttpd, which serves metrics");
}

void metrics_server_stop(struct metrics_server *s)
{
    (void)s;
}

unsigned metrics_server_wants(struct metrics_server *s)
{
    (void)s;
    return WANT_NOTHING;
}

void metrics_server_give_state(struct metrics_server *s, bool ready, const char *text)
{
    (void)s;
    (void)ready;
    (void)text;
}

void metrics_server_give_figures(struct metrics_server *s, struct figures *n)
{
    (void)s;
    figures_destroy(n);
}

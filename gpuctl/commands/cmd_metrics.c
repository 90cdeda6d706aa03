/* The daemon's metrics as text, from the address where it serves them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/base/http.h"
#include "gpuctl/ctl/ctl.h"

#define ADDRESS_MAX 256
#define WAIT_NS     (UINT64_C(10) * 1000000000)

enum { OPT_OPENMETRICS = 1 };

const struct option metrics_option_list[] = {
    {"openmetrics", 0, false, OPT_OPENMETRICS},
    {0},
};

/* The setting [metrics] listen of the daemon. */
static int find_listen(struct ctl *ctl, char *out, size_t size, struct ctl_err *e)
{
    gpud_table *t = NULL;
    out[0] = '\0';
    int rc = ctl_connect(ctl, e);
    if (rc == 0 && (rc = gpud_query(ctl->client, "config", NULL, &t)) != 0) {
        ctl_err_lib(e, rc, "config");
    }
    if (rc != 0) {
        return rc;
    }
    int section = gpud_table_find(t, "section");
    int key = gpud_table_find(t, "key");
    int value = gpud_table_find(t, "value");
    for (uint32_t i = 0; section >= 0 && key >= 0 && value >= 0 && i < gpud_table_rows(t); i++) {
        if (strcmp(gpud_table_text(t, i, (uint32_t)section), "metrics") == 0 &&
            strcmp(gpud_table_text(t, i, (uint32_t)key), "listen") == 0) {
            (void)snprintf(out, size, "%s", gpud_table_text(t, i, (uint32_t)value));
        }
    }
    gpud_table_free(t);
    return 0;
}

/* Adds what to do. */
static int not_served(struct ctl_err *e)
{
    const struct ctl_err why = *e;
    switch (why.code) {
    case GPUD_ERR_PERMISSION:
        return ctl_err_set(
            e, why.code, "%s: the socket is for root, the daemon's user and admin_group", why.text);
    case GPUD_ERR_CONNECT:
    case GPUD_ERR_PROTOCOL: /* something else serves there */
        return ctl_err_set(e, why.code,
                           "%s: gpuctl status has the problem; if it has none, gpud.service lacks "
                           "gpud-metrics.conf, without which it has no loopback",
                           why.text);
    default:
        return why.code;
    }
}

/* Asks one address after the other, until one answers. */
static int fetch(const char *listen, const char *accept, uint64_t ns, char **ret_body,
                 size_t *ret_size, struct ctl_err *e)
{
    static const char separators[] = ", \t";
    char address[ADDRESS_MAX];
    int rc = ctl_err_set(e, GPUD_ERR_STATE,
                         "the daemon serves no metrics: set listen = 127.0.0.1:9464 in [metrics] "
                         "of gpud.conf, then: gpuctl reload");
    for (const char *c = listen + strspn(listen, separators); rc != 0 && *c != '\0';) {
        size_t length = strcspn(c, separators);
        (void)snprintf(address, sizeof address, "%.*s", (int)length, c);
        rc = http_get(address, "/metrics", accept, ns, ret_body, ret_size, e);
        rc = rc != 0 ? not_served(e) : 0;
        c += length;
        c += strspn(c, separators);
    }
    return rc;
}

int cmd_metrics(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    char listen[1024];
    const char *accept = "text/plain";
    const char *value = NULL;
    char *body = NULL;
    size_t size = 0;
    int id;
    while ((id = ctl_option_only(ctl, options, metrics_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        accept = "application/openmetrics-text";
    }
    if (!ctl_people(ctl)) {
        return ctl_err_usage(e, "metrics have a format of their own: leave -o out");
    }
    if (ctl_other_host(ctl)) { /* the address in its setting would be taken for one of this host */
        return ctl_err_usage(e, "metrics are served on the daemon's own host only: use gpuctl "
                                "metrics there, without a URL of tls+tcp");
    }
    uint64_t ns = 0;
    int rc = ctl_timeout(&ns, e);
    rc = rc == 0 ? find_listen(ctl, listen, sizeof listen, e) : rc;
    rc = rc == 0 ? fetch(listen, accept, ns != 0 ? ns : WAIT_NS, &body, &size, e) : rc;
    if (rc == 0 && (fwrite(body, 1, size, stdout) != size || fflush(stdout) != 0)) {
        rc = ctl_err_errno(e, "standard output");
    }
    free(body);
    return rc;
}

#include "gpuctl/ctl/ctl.h"

int cmd_ping(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    if (rc == 0) {
        rc = ctl_connect(ctl, e);
    }
    uint64_t ns = 0;
    if (rc == 0 && (rc = gpud_ping(ctl->client, &ns)) != 0) {
        ctl_err_lib(e, rc, "no answer");
    }
    gpud_limits_desc limits = {.size = sizeof limits};
    if (rc == 0 && (rc = gpud_limits(ctl->client, &limits)) != 0) {
        ctl_err_lib(e, rc, "limits");
    }
    if (rc != 0) {
        return rc;
    }
    const struct sheet_column columns[] = {
        {"round_trip", GPUD_COLUMN_NS, false},
        {"build", GPUD_COLUMN_TEXT, false},
        {"tenant", GPUD_COLUMN_TEXT, false},
        {"session", GPUD_COLUMN_UINT, true},
    };
    const struct sheet_cell cells[] = {
        {.value = ns}, {.text = limits.build}, {.text = limits.tenant}, {.value = limits.session}};
    struct sheet sheet = {
        .name = "ping", .columns = columns, .column_count = 4, .cells = cells, .row_count = 1};
    return ctl_write(ctl, &sheet, e);
}

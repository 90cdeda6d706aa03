#include "gpuctl/ctl/ctl.h"

struct answer {
    struct sheet_cell round_trip, build, tenant, session;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct answer, round_trip, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct answer, build, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct answer, tenant, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct answer, session, GPUD_COLUMN_UINT, true),
};

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
    const struct answer row = {.round_trip = {.value = ns},
                               .build = {.text = limits.build},
                               .tenant = {.text = limits.tenant},
                               .session = {.value = limits.session}};
    const struct sheet_rows rows = SHEET_ROWS("ping", fields, &row, 1);
    return ctl_write_rows(ctl, &rows, e);
}

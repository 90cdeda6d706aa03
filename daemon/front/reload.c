#include "daemon/front/reload.h"

#include "common/log.h"
#include "daemon/front/notify.h"
#include "daemon/front/tenant_quota.h"

static int read_again(struct front *f, struct err *e)
{
    struct config fresh;
    struct rights rights;
    struct tenant_rules rules = {.count = 0};
    char waiting[512];
    int rc = f->read_settings(f->settings_data, &fresh, e);
    if (rc == 0) {
        rc = rights_read(&fresh, &rights, e);
    }
    rc = rc == 0 ? tenant_rules_read(&fresh, &rules, e) : rc;
    rc = rc == 0 ? quota_rules(f, &rules, e) : rc;
    if (rc != 0) {
        tenant_rules_finish(&rules);
        return err_wrap(e, "settings are kept as they were");
    }
    config_take_live(&f->config, &fresh, waiting, sizeof waiting);
    f->rights = rights;
    quota_retry(f);
    for (const struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        s->tenant->may_load = rights_loads(&f->rights, s);
    }
    log_set_level(f->config.log_level);
    f->hooks.settings_changed(f);
    log_info("settings were read again");
    if (waiting[0] != '\0') {
        log_warn("these settings differ and count from the next start: %s", waiting);
    }
    return 0;
}

int reload_settings(struct front *f, struct err *e)
{
    struct err why = ERR_INIT;
    if (f->ready_told) {
        notify_reloading();
    }
    int rc = read_again(f, &why);
    if (rc != 0) {
        log_error("%s", why.text);
    }
    if (f->ready_told) {
        notify_ready(f->device_count);
    }
    if (rc != 0 && e != NULL) {
        *e = why;
    }
    return rc;
}

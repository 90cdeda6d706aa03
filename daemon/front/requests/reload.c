#include "daemon/front/requests/reload.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/settings/accepted.h"
#include "daemon/front/settings/tls_files.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/notify.h"

struct asked {
    struct request *request[RELOAD_ASKED_MAX]; /* owned */
    unsigned count;
};

struct reload {
    struct front *front;
    uv_work_t work;
    bool reading; /* under way; the members down to `e` are the thread's meanwhile */
    struct config config;
    struct rights rights;
    struct tenant_rules rules;
    struct tls_files tls;
    int rc;
    struct err e;

    /* the loop's */
    bool again;         /* another reading was asked for meanwhile */
    struct asked asked; /* requests to answer after the reading under way */
    struct asked later;
};

static void read_all(uv_work_t *work)
{
    struct reload *r = work->data;
    struct front *f = r->front; /* only members that never change are read */
    r->rc = f->read_settings(f->settings_data, &r->config, &r->e);
    r->rc = r->rc == 0 ? rights_read(&r->config, &r->rights, &r->e) : r->rc;
    r->rc = r->rc == 0 ? tenant_rules_read(&r->config, &r->rules, &r->e) : r->rc;
    r->rc = r->rc == 0 ? tenant_rules_folders(&r->rules, &r->config, &r->e) : r->rc;
    r->rc = r->rc == 0 ? remote_files_read(&r->config, &r->rules, &r->tls, &r->e) : r->rc;
    struct err e = ERR_INIT;
    if (r->rc == 0 && accepted_keep(&r->config, &e) != 0) {
        log_say(LOG_SETTINGS_NOT_KEPT, "%s", e.text);
    }
}

static void take_over(struct front *f, struct reload *r)
{
    char waiting[512];
    if (r->rc == 0) {
        r->rc = quota_rules(f, &r->rules, r->config.device_memory_max, &r->e);
    }
    (void)snprintf(f->settings_bad, sizeof f->settings_bad, "%s", r->rc != 0 ? r->e.text : "");
    if (r->rc != 0) {
        (void)err_wrap(&r->e, "the settings are unchanged");
        log_say(LOG_SETTINGS_BAD, "%s", r->e.text);
        return;
    }
    config_take_live(&f->config, &r->config, waiting, sizeof waiting);
    f->rights = r->rights;
    f->files_bad[0] = '\0';
    tls_files_finish(&f->tls);
    f->tls = r->tls;
    r->tls = (struct tls_files){.cert = NULL};
    f->hooks.guarantees_retry(f);
    discover_again(f);
    for (const struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        quota_place(f, s);
        s->tenant->may_load = rights_loads(&f->rights, s);
    }
    log_set_level(f->config.log_level);
    f->hooks.settings_changed(f);
    session_rules_changed(f);
    wake_at(f, front_now(f)); /* what waits for a time or a place has other ones now */
    log_say(LOG_SETTINGS_READ, "settings were read again");
    if (waiting[0] != '\0') {
        log_say(LOG_SETTINGS_WAIT,
                "these settings changed and apply from the next start, those of devices, managed "
                "memory and staging memory when workers restart (systemctl restart gpud-launcher "
                "gpud): %s",
                waiting);
    }
}

static void answer(struct front *f, struct reload *r)
{
    uint8_t room[PROTO_ERROR_BYTES];
    struct capbuf out;
    const struct msg_done done = {0};
    capbuf_init_in(&out, sizeof room, room, sizeof room);
    (void)proto_encode(&schema_msg_done, &done, &out, NULL); /* it has room */
    for (unsigned i = 0; i < r->asked.count; i++) {
        struct request *request = r->asked.request[i];
        if (r->rc != 0) {
            reply_error(f, request, &r->e);
        } else {
            reply_plain(f, request, capbuf_view(&out));
            request_destroy(request);
        }
    }
    r->asked.count = 0;
    capbuf_finish(&out);
}

static void begin(struct front *f, struct reload *r);

static void on_read(uv_work_t *work, int status)
{
    struct reload *r = work->data;
    struct front *f = r->front;
    r->reading = false;
    if (front_life_stops(f->life)) {
        return; /* reload_finish() frees it */
    }
    if (status != 0) {
        r->rc = err_set(&r->e, ERR_INTERNAL, "reading settings: %s", uv_strerror(status));
    }
    take_over(f, r);
    tenant_rules_finish(&r->rules);
    tls_files_finish(&r->tls);
    if (f->ready_reported) {
        notify_ready(f->device_count);
    }
    notify_status(f);
    answer(f, r);
    if (r->again) {
        r->again = false;
        r->asked = r->later;
        r->later.count = 0;
        begin(f, r);
    }
}

static void begin(struct front *f, struct reload *r)
{
    r->rc = 0;
    r->e = (struct err)ERR_INIT;
    r->rules = (struct tenant_rules){.count = 0};
    r->work.data = r;
    if (f->ready_reported) {
        notify_reloading();
    }
    int rc = uv_queue_work(f->loop, &r->work, read_all, on_read);
    r->reading = rc == 0;
    if (rc != 0) { /* only without memory */
        r->rc = err_set(&r->e, ERR_NOMEM, "reading settings: %s", uv_strerror(rc));
        log_say(LOG_SETTINGS_BAD, "%s", r->e.text);
        answer(f, r);
    }
}

int reload_settings(struct front *f, struct request *request, struct err *e)
{
    if (f->reload == NULL) {
        f->reload = calloc(1, sizeof *f->reload);
        if (f->reload == NULL) {
            return err_set(e, ERR_NOMEM, "no memory to read the settings");
        }
        f->reload->front = f;
    }
    struct reload *r = f->reload;
    struct asked *asked = r->reading ? &r->later : &r->asked;
    if (request != NULL && asked->count == RELOAD_ASKED_MAX) {
        return err_set(e, ERR_BUSY, "%u requests wait for a reload already", asked->count);
    }
    if (request != NULL) {
        asked->request[asked->count++] = request;
    }
    if (r->reading) {
        r->again = true;
    } else {
        begin(f, r);
    }
    return 0;
}

bool reload_under_way(const struct front *f)
{
    return f->reload != NULL && f->reload->reading;
}

static void forget(struct asked *asked)
{
    for (unsigned i = 0; i < asked->count; i++) {
        asked->request[i]->slot = NULL; /* the listener has freed it */
        request_destroy(asked->request[i]);
    }
    asked->count = 0;
}

void reload_finish(struct front *f)
{
    struct reload *r = f->reload;
    if (r != NULL) {
        forget(&r->asked);
        forget(&r->later);
        tenant_rules_finish(&r->rules);
        tls_files_finish(&r->tls);
        free(r);
        f->reload = NULL;
    }
}

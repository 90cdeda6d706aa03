#include "tests/storm/probe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define PROBE_ITEMS 16u

static int ask_device(gpud_client *c, unsigned device)
{
    gpud_kernel fill = {0};
    gpud_job *job = NULL;
    float y[PROBE_ITEMS] = {0};
    int rc = gpud_kernel_find(c, "fill", &fill);
    gpud_arg args[] = {gpud_f32(3), gpud_host_out(y, PROBE_ITEMS, GPUD_F32)};
    gpud_submit_options o = {.size = sizeof o, .device = GPUD_ON(device), .priority = 16};
    rc = rc == 0 ? gpud_launch(c, fill, args, 2, NULL, &o, &job) : rc;
    rc = rc == 0 ? gpud_wait(job, PATIENCE) : rc;
    gpud_job_free(job);
    return rc == 0 && y[PROBE_ITEMS - 1] != 3 ? GPUD_ERR_INTERNAL : rc;
}

/* Each source is another one, so that no cache has it. */
static int ask_compiler(gpud_client *c, unsigned number)
{
    char source[256];
    gpud_module m = {0};
    (void)snprintf(source, sizeof source,
                   "//@kernel probe<T: f32>(inout T x[n]) over n\n{\n    x[i] = %u%06u.0f;\n}\n",
                   (unsigned)getpid() % 1000, number);
    int rc = gpud_module_load(c, GPUD_LANG_DIALECT, source, strlen(source), NULL, &m);
    return rc == 0 ? gpud_module_unload(c, m) : rc;
}

static int ask(const struct probe *p, unsigned number)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o,
                      .connect_timeout_ns = PATIENCE,
                      .timeout_ns = PATIENCE,
                      .reconnect_ns = PATIENCE};
    int rc = gpud_open(p->url, &o, &c);
    if (rc != 0) {
        return rc;
    }
    switch (p->kind) {
    case PROBE_FRONT:
        rc = gpud_ping(c, NULL);
        break;
    case PROBE_COMPILER:
        rc = ask_compiler(c, number);
        break;
    default:
        rc = ask_device(c, p->kind - PROBE_DEVICE);
        break;
    }
    gpud_close(c);
    return rc;
}

/* After a question from before a mishap the next one comes at once: the pause would count as time
 * that the daemon took to recover. */
int probe_work(void *data)
{
    const struct probe *p = data;
    struct probe_result *r = &p->l->probe[p->kind];
    for (unsigned number = 0; !atomic_load(&p->l->stop); number++) {
        uint64_t begin_ns = now_ns();
        if (ask(p, number) == 0) {
            atomic_store(&r->end_ns, now_ns());
            atomic_store(&r->begin_ns, begin_ns);
            atomic_fetch_add(&r->count, 1);
        }
        bool recovers = begin_ns <= atomic_load(&p->l->mishap_ns);
        pause_ms(recovers ? 1 : p->kind == PROBE_COMPILER ? 300 : 30);
    }
    return 0;
}

bool probe_answered(const struct ledger *l, unsigned kind, uint64_t since, uint64_t *ret_ns)
{
    const struct probe_result *r = &l->probe[kind];
    if (atomic_load(&r->begin_ns) <= since) {
        return false;
    }
    *ret_ns = atomic_load(&r->end_ns);
    return true;
}

/* Settings that are read again in a thread: a reading that takes its time holds up nobody. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/front/ending.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/reload.h"
#include "daemon/front/requests/requests.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"
#include "tests/unit/front/scratch.h"

static struct fake *k;
static uv_loop_t loop;
static uv_sem_t gate;  /* a reading waits for it, as for a name service */
static unsigned reads; /* begun; the thread's until the loop has heard of its end */
static int outcome;
static char dir[SCRATCH_PATH];
static char file[SCRATCH_PATH + 32];

static char slots[2 * RELOAD_ASKED_MAX + 2];
static unsigned answers[sizeof slots]; /* to the request of each slot */
static int codes[sizeof slots];        /* with what, 0: DONE */

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    size_t i = (size_t)((const char *)slot - slots);
    struct msg_error m;
    struct msg_done done;
    ck_assert_uint_lt(i, sizeof slots);
    answers[i]++;
    codes[i] = 0;
    if (proto_decode(&schema_msg_done, message, &done, NULL) != 0) {
        ck_assert_int_eq(proto_decode(&schema_msg_error, message, &m, NULL), 0);
        codes[i] = (int)m.code;
    }
}

/* By an administrator, as it comes over the socket. The code; 0: it will be answered. */
static int ask(unsigned slot)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->slot = (struct listener_slot *)(void *)&slots[slot];
    r->kind = MSG_KIND_CONTROL;
    r->msg.control.what = bytes_str("reload");
    k->session->client.local = true;
    k->session->key.uid = 0;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    struct request_context c = {.f = &k->f, .s = k->session, .r = r, .out = &out};
    int rc = request_control(&c, &e);
    ck_assert_uint_eq(out.size, 0); /* not yet */
    if (rc == 0) {
        ck_assert_ptr_null(c.r);
    } else {
        ck_assert_ptr_eq(c.r, r);
        request_destroy(r);
    }
    capbuf_finish(&out);
    return rc;
}

static int read_settings(void *data, struct config *ret_config, struct err *e)
{
    uv_sem_wait(&gate);
    reads++;
    if (outcome != 0) {
        return err_set(e, outcome, "%s", (const char *)data);
    }
    config_defaults(ret_config);
    ret_config->chosen = true;
    ret_config->window = reads;
    (void)snprintf(ret_config->file, sizeof ret_config->file, "%s", file);
    return 0;
}

static void changed(struct front *f)
{
    (void)f;
}

static void begin(const char *settings)
{
    static char text[] = "line 3: what is this";
    k = fake_create();
    k->f.io.reply = on_reply;
    scratch_make(dir);
    (void)snprintf(file, sizeof file, "%s", scratch_path(dir, "gpud.conf"));
    scratch_write(file, settings, strlen(settings));
    reads = 0;
    outcome = 0;
    memset(answers, 0, sizeof answers);
    k->f.loop = &loop;
    k->f.read_settings = read_settings;
    k->f.settings_data = text;
    k->f.hooks.settings_changed = changed;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_sem_init(&gate, 0), 0);
}

static void finish(void)
{
    reload_finish(&k->f);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    uv_sem_destroy(&gate);
    tenant_rules_finish(&k->f.rules);
    scratch_remove(dir);
    fake_destroy(k);
}

/* All who ask while one is under way are served by one more. */
START_TEST(a_slow_reading_holds_up_nobody)
{
    struct err e = ERR_INIT;
    begin("[tenant vision]\nusers = 7\nmemory_total = 5G\n");
    uint64_t window = k->f.config.window;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    ck_assert_uint_eq(k->f.config.window, window); /* and the loop has gone on */
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_uint_eq(k->f.config.window, 1);
    const struct tenant *t = tenant_find(k->f.tenants, tenant_key_of("vision"));
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(t->limits.total, UINT64_C(5) << 30);
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(k->f.config.window, 2);
    ck_assert_uint_eq(reads, 2);
    finish();
}
END_TEST

START_TEST(what_is_wrong_changes_nothing)
{
    struct err e = ERR_INIT;
    begin("");
    outcome = ERR_INVALID;
    uint64_t window = k->f.config.window;
    uv_sem_post(&gate);
    ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(reads, 1);
    ck_assert_uint_eq(k->f.config.window, window);
    outcome = 0;
    uv_sem_post(&gate);
    ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(k->f.config.window, 2);
    finish();
}
END_TEST

/* A tenant that waits for a place may have one now, though nothing else was to happen. */
START_TEST(what_waits_is_looked_at)
{
    struct err e = ERR_INIT;
    begin("");
    k->f.wake_ns = NS_NEVER;
    outcome = ERR_INVALID;
    uv_sem_post(&gate);
    ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(k->f.wake_ns, NS_NEVER);
    outcome = 0;
    uv_sem_post(&gate);
    ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(k->f.wake_ns, fake_now());
    finish();
}
END_TEST

/* The daemon ends meanwhile: nothing is taken over. */
START_TEST(an_end_meanwhile)
{
    struct err e = ERR_INIT;
    begin("");
    uint64_t window = k->f.config.window;
    ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
    k->f.life = FRONT_STOPPING;
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(k->f.config.window, window);
    finish();
}
END_TEST

/* A process that waits for a reading which does not end ends all the same, as it would have. */
START_TEST(what_does_not_end_is_left_behind)
{
    struct err e = ERR_INIT;
    int status = 0;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        begin("");
        k->f.exit_code = 3;
        ending_within(&k->f, 600, "something else");
        (void)reload_settings(&k->f, NULL, &e);
        ending_within(&k->f, 1, "a test");
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        _exit(4);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 3);
}
END_TEST

START_TEST(it_is_known_whether_one_is_under_way)
{
    struct err e = ERR_INIT;
    begin("");
    ck_assert(!reload_under_way(&k->f));
    ck_assert_int_eq(reload_settings(&k->f, NULL, &e), 0);
    ck_assert(reload_under_way(&k->f));
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(!reload_under_way(&k->f));
    finish();
}
END_TEST

/* Each is told what came of the reading that began after it had asked, once. */
START_TEST(who_asks_is_answered_once)
{
    begin("");
    ck_assert_int_eq(ask(0), 0);
    ck_assert_int_eq(ask(1), 0);
    ck_assert_int_eq(ask(2), 0);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(answers[0] + answers[1] + answers[2], 0);
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_uint_eq(answers[0], 1);
    ck_assert_int_eq(codes[0], 0);
    ck_assert_uint_eq(answers[1] + answers[2], 0);
    outcome = ERR_INVALID; /* the thread waits at the gate */
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(answers[0], 1);
    for (unsigned i = 1; i <= 2; i++) {
        ck_assert_uint_eq(answers[i], 1);
        ck_assert_int_eq(codes[i], ERR_INVALID);
    }
    finish();
}
END_TEST

/* The answer goes to where the request came from, whoever is there. */
START_TEST(the_session_ends_meanwhile)
{
    begin("");
    ck_assert_int_eq(ask(0), 0);
    session_destroy(k->session);
    k->session = NULL;
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(answers[0], 1);
    finish();
}
END_TEST

START_TEST(too_many_ask)
{
    begin("");
    for (unsigned i = 0; i <= RELOAD_ASKED_MAX; i++) { /* one is being served */
        ck_assert_int_eq(ask(i), 0);
    }
    ck_assert_int_eq(ask(RELOAD_ASKED_MAX + 1), ERR_BUSY);
    uv_sem_post(&gate);
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i <= RELOAD_ASKED_MAX; i++) {
        ck_assert_uint_eq(answers[i], 1);
    }
    ck_assert_uint_eq(answers[RELOAD_ASKED_MAX + 1], 0); /* by who called */
    ck_assert_uint_eq(reads, 2);
    ck_assert_int_eq(ask(0), 0); /* and there is room again */
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(answers[0], 2);
    finish();
}
END_TEST

/* Those that wait when the daemon ends go with the listener. */
START_TEST(an_end_answers_nobody)
{
    begin("");
    ck_assert_int_eq(ask(0), 0);
    ck_assert_int_eq(ask(1), 0);
    k->f.life = FRONT_STOPPING;
    uv_sem_post(&gate);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(answers[0] + answers[1], 0);
    finish();
}
END_TEST

SUITE_MAIN("reload", a_slow_reading_holds_up_nobody, what_is_wrong_changes_nothing,
           what_waits_is_looked_at, an_end_meanwhile, what_does_not_end_is_left_behind,
           it_is_known_whether_one_is_under_way, who_asks_is_answered_once,
           the_session_ends_meanwhile, too_many_ask, an_end_answers_nobody)

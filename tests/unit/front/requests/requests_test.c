/* Requests about buffers that come again, or come from before. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memfd.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/shares.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static struct capbuf out;
static uint64_t seq;

static void begin(void)
{
    k = fake_create();
    idmap_finish(&k->f.buffers);
    idmap_init(&k->f.buffers, 1024, 100); /* this daemon's first generation */
    capbuf_init(&out, 65536);
}

static void end(void)
{
    capbuf_finish(&out);
    fake_destroy(k);
}

static int ask(request_fn handler, uint64_t handle, struct op *o)
{
    struct request r = {.slot = NULL};
    struct err e = ERR_INIT;
    r.msg.buffer_free.handle = handle; /* where all that name a buffer have it */
    struct request_context c = {.f = &k->f, .s = k->session, .o = o, .r = &r, .out = &out};
    capbuf_reset(&out);
    return handler(&c, &e);
}

START_TEST(letting_go_of_what_an_earlier_daemon_gave_out)
{
    begin();
    uint64_t before = idmap_handle(99, 7);
    ck_assert_int_eq(ask(request_buffer_free, before, NULL), 0);
    ck_assert_uint_eq(proto_kind(capbuf_view(&out)), MSG_KIND_DONE);
    ck_assert_int_eq(ask(request_buffer_free, idmap_handle(100, 7), NULL), ERR_BAD_HANDLE);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    uint64_t freed = b->handle;
    fake_drop(k, b);
    ck_assert_int_eq(ask(request_buffer_free, freed, NULL), ERR_STALE_HANDLE);
    ck_assert_int_eq(ask(request_buffer_info, before, NULL), ERR_BUFFER_LOST);
    b = fake_buffer(k, 0, 64, true);
    (void)idmap_remove(&k->f.buffers, b->handle);
    b->handle = idmap_handle(99, 9); /* adopted, and freed by this daemon */
    ck_assert(idmap_restore(&k->f.buffers, b->handle, b));
    fake_drop(k, b);
    ck_assert_int_eq(ask(request_buffer_info, idmap_handle(99, 9), NULL), ERR_STALE_HANDLE);
    ck_assert_int_eq(ask(request_buffer_info, idmap_handle(98, 9), NULL), ERR_BUFFER_LOST);
    end();
}
END_TEST

/* One that another session owns: whoever had opened it by its name has forgotten that. */
START_TEST(letting_go_of_what_was_opened_by_name_before)
{
    begin();
    struct buffer *mine = fake_buffer(k, 0, 64, true);
    ck_assert_int_eq(ask(request_buffer_free, mine->handle, NULL), ERR_PERMISSION);
    struct buffer *old = fake_buffer(k, 0, 64, true);
    (void)idmap_remove(&k->f.buffers, old->handle);
    old->handle = idmap_handle(99, 9);
    ck_assert(idmap_restore(&k->f.buffers, old->handle, old));
    ck_assert_int_eq(ask(request_buffer_free, old->handle, NULL), 0);
    ck_assert_ptr_eq(idmap_get(&k->f.buffers, old->handle), old);
    end();
}
END_TEST

/* Whether it is another's, was freed by another or never was: a stranger gets one answer. */
START_TEST(a_stranger_learns_nothing_of_handles)
{
    begin();
    static const request_fn asks[] = {request_buffer_free, request_buffer_info,
                                      request_buffer_export, request_buffer_seal};
    struct session *mine = k->session;
    struct session *stranger = session_create(&(struct session_key){.uid = 7}, k->tenant, 9);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct buffer *held = fake_buffer(k, 0, 64, true);
    buffer_own(b, mine);
    buffer_own(held, mine);
    mine->buffers += 2;
    uint64_t freed = b->handle;
    k->session = stranger;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        ck_assert_int_eq(ask(asks[i], freed, NULL), ERR_BAD_HANDLE);
    }
    held->users++; /* a job names it: its handle stays for a while */
    buffer_drop(&k->f, b);
    buffer_drop(&k->f, held);
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        ck_assert_int_eq(ask(asks[i], freed, NULL), ERR_BAD_HANDLE);
        ck_assert_int_eq(ask(asks[i], held->handle, NULL), ERR_BAD_HANDLE);
    }
    k->session = mine;
    ck_assert_int_eq(ask(request_buffer_info, freed, NULL), ERR_STALE_HANDLE);
    ck_assert_int_eq(ask(request_buffer_info, held->handle, NULL), ERR_STALE_HANDLE);
    held->users--;
    buffer_settle(&k->f, held);
    session_destroy(stranger);
    end();
}
END_TEST

START_TEST(sealing_what_is_sealed)
{
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct op *o = op_create(k->session, 1, NULL);
    ck_assert_ptr_nonnull(o);
    buffer_own(b, k->session);
    b->sealed = true;
    for (int i = 0; i < 2; i++) {
        b->state = i == 0 ? BUFFER_LIVE : BUFFER_RESTORING;
        struct msg_buffer m;
        ck_assert_int_eq(ask(request_buffer_seal, b->handle, o), 0);
        ck_assert_int_eq(proto_decode(&schema_msg_buffer, capbuf_view(&out), &m, NULL), 0);
        ck_assert_uint_eq(m.handle, b->handle);
        ck_assert_uint_eq(m.state, 3);
        ck_assert_ptr_null(b->pending);
    }
    b->pending = o;
    ck_assert_int_eq(ask(request_buffer_seal, b->handle, NULL), ERR_STATE);
    ck_assert_ptr_eq(b->pending, o);
    b->pending = NULL;
    b->state = BUFFER_LOST;
    ck_assert_int_eq(ask(request_buffer_seal, b->handle, o), ERR_BUFFER_LOST);
    buffer_unown(b);
    end();
}
END_TEST

static void worker_says(const struct buffer *b, int code)
{
    struct msg_w_buffer m = {.id = b->handle, .code = code, .text = bytes_str("so it is")};
    buffer_answered(&k->f, &k->device[b->device], &m);
}

static struct buffer *counted(unsigned device)
{
    struct buffer *b = fake_buffer(k, device, 64, true);
    k->device[device].buffer_bytes += b->bytes;
    k->tenant->buffer_bytes += b->bytes;
    return b;
}

static struct buffer *half_sealed(void)
{
    struct memfd host = MEMFD_NONE;
    struct buffer *b = counted(0);
    ck_assert_int_eq(memfd_create_sealed("test", 64, &host, NULL), 0);
    b->sealed = true;
    b->sealing = true; /* its maker published it and ended: nobody waits for the answer */
    b->host_fd = host.fd;
    host.fd = -1;
    memfd_finish(&host);
    return b;
}

/* The host copy counts from when the worker says that it is filled. */
START_TEST(what_was_not_copied_is_not_restored)
{
    begin();
    struct buffer *half = half_sealed();
    struct buffer *whole = half_sealed();
    struct buffer *failed = half_sealed();
    worker_says(whole, 0);
    worker_says(failed, ERR_NOMEM);
    ck_assert(whole->sealed && !whole->sealing);
    ck_assert(!failed->sealed && failed->host_fd < 0);
    buffer_device_lost(&k->f, &k->device[0]);
    ck_assert_int_eq(whole->state, BUFFER_RESTORING);
    ck_assert_int_eq(half->state, BUFFER_LOST);
    ck_assert_int_eq(half->host_fd, -1);
    ck_assert_int_eq(failed->state, BUFFER_LOST);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 64);
    end();
}
END_TEST

static unsigned notices_of(const struct session *s, uint64_t handle)
{
    unsigned count = 0;
    for (const struct notice *n = s->events.notices; n != NULL; n = n->next) {
        count += n->kind == NOTICE_BUFFER_LOST && n->handle == handle;
    }
    return count;
}

static struct session *another(uint8_t number)
{
    struct session_key key;
    memset(&key, number, sizeof key);
    struct session *s = session_create(&key, k->tenant, number);
    ck_assert_ptr_nonnull(s);
    return s;
}

/* _i 0: with its worker; 1: it was sealed and could not be restored; 2: its device is given up. */
START_TEST(a_lost_buffer_takes_no_room_and_all_are_told_once)
{
    begin();
    struct session *opener = another(7);
    struct buffer *b = counted(0);
    struct buffer *beside = counted(1);
    buffer_own(b, k->session);
    k->session->buffers++;
    k->session->near[0]++;
    ck_assert(buffer_opener_add(b, opener, 1) && buffer_opener_add(b, k->session, 2));
    ck_assert(buffer_opener_add(b, opener, 3));
    if (_i > 0) {
        buffer_set_state(b, BUFFER_RESTORING);
    }
    if (_i == 0) {
        buffer_device_lost(&k->f, &k->device[0]);
    } else if (_i == 1) {
        worker_says(b, ERR_DEVICE_MEMORY);
    } else {
        buffer_device_given_up(&k->f, &k->device[0]);
    }
    ck_assert_int_eq(b->state, BUFFER_LOST);
    ck_assert_int_eq(beside->state, BUFFER_LIVE);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 0);
    ck_assert_uint_eq(k->tenant->buffer_bytes, 64);
    ck_assert_uint_eq(notices_of(k->session, b->handle), 1);
    ck_assert_uint_eq(notices_of(opener, b->handle), 1);
    ck_assert(buffer_opener_remove(b, opener) && buffer_opener_remove(b, opener));
    ck_assert(buffer_opener_remove(b, k->session));
    ck_assert_uint_eq(opener->opens + k->session->opens, 0);
    ck_assert_uint_eq(opener->near[0] + k->session->near[0], 0);
    ck_assert_int_eq(ask(request_buffer_free, b->handle, NULL), 0);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 0);
    ck_assert_uint_eq(k->tenant->buffer_bytes, 64);
    ck_assert_uint_eq(k->session->buffers, 0);
    session_destroy(opener);
    end();
}
END_TEST

/* They are marked in slices; a request sees it at once, and no worker starts before the last one.
 */
START_TEST(many_lost_buffers_are_lost_at_once)
{
    enum { MANY = 900 };
    struct buffer *b[MANY];
    begin();
    struct device *d = &k->device[0];
    for (unsigned i = 0; i < MANY; i++) {
        b[i] = counted(0);
        buffer_own(b[i], k->session);
        k->session->buffers++;
        k->session->near[0]++;
    }
    struct buffer *kept = half_sealed();
    kept->sealing = false;
    turn_allow(&k->f, 100);
    buffer_device_lost(&k->f, d);
    ck_assert_int_eq(b[0]->state, BUFFER_LOST);
    ck_assert_int_eq(b[MANY - 1]->state, BUFFER_LIVE);
    ck_assert_int_eq(buffer_state(b[MANY - 1]), BUFFER_LOST);
    ck_assert_str_eq(buffer_state_name(b[MANY - 1]), "lost");
    ck_assert_int_eq(buffer_state(kept), BUFFER_RESTORING);
    ck_assert_int_eq(ask(request_buffer_seal, b[MANY - 1]->handle, NULL), ERR_BUFFER_LOST);
    ck_assert_int_eq(ask(request_buffer_free, b[MANY - 1]->handle, NULL), 0);
    ck_assert(!device_may_restart(d, NS_NEVER - 1));
    unsigned turns = 0;
    for (; d->losing; turns++) {
        turn_allow(&k->f, 100);
        buffer_lose_some(&k->f);
    }
    ck_assert_uint_gt(turns, 10);
    ck_assert(device_may_restart(d, NS_NEVER - 1));
    for (unsigned i = 0; i < MANY - 1; i++) {
        ck_assert_int_eq(b[i]->state, BUFFER_LOST);
    }
    ck_assert_int_eq(kept->state, BUFFER_RESTORING);
    ck_assert_uint_eq(d->buffer_bytes, 64);
    ck_assert_uint_eq(k->session->near[0], 0);
    ck_assert_uint_eq(k->session->events.notice_count, MANY - 1);
    k->f.work.budget = 0;
    end();
}
END_TEST

static char slot;
static int answered_code;

static void on_reply(struct listener *l, struct listener_slot *to, struct bytes message)
{
    struct msg_error m;
    (void)l;
    ck_assert_ptr_eq(to, &slot);
    ck_assert_int_eq(proto_decode(&schema_msg_error, message, &m, NULL), 0);
    answered_code = (int)m.code;
}

START_TEST(what_a_given_up_device_was_to_make_is_answered)
{
    begin();
    struct buffer *b = counted(0);
    uint64_t handle = b->handle;
    k->f.io.reply = on_reply;
    b->pending = op_create(k->session, 1, (struct listener_slot *)(void *)&slot);
    buffer_own(b, k->session);
    k->session->buffers++;
    buffer_set_state(b, BUFFER_CREATING);
    buffer_device_given_up(&k->f, &k->device[1]);
    ck_assert_int_eq(answered_code, 0);
    buffer_device_given_up(&k->f, &k->device[0]);
    ck_assert_int_eq(answered_code, ERR_NO_DEVICE);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, handle));
    ck_assert_uint_eq(k->device[0].buffer_bytes + k->tenant->buffer_bytes, 0);
    ck_assert_uint_eq(k->session->buffers, 0);
    end();
}
END_TEST

START_TEST(opening_has_an_end)
{
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct request r = {.slot = NULL};
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .out = &out};
    buffer_rename(b, "shared");
    r.msg.buffer_open.name = bytes_str("shared");
    k->f.config.buffers_max = 3;
    for (int i = 0; i < 4; i++) {
        capbuf_reset(&out);
        ck_assert_int_eq(request_buffer_open(&c, NULL), i < 3 ? 0 : ERR_LIMIT);
    }
    ck_assert(buffer_opener_remove(b, k->session));
    ck_assert_int_eq(request_buffer_open(&c, NULL), 0);
    end();
}
END_TEST

static int ask_for(request_fn handler, const struct request *r, struct err *e)
{
    struct request mine = *r;
    struct request_context c = {.f = &k->f, .s = k->session, .r = &mine, .out = &out};
    capbuf_reset(&out);
    err_init(e);
    return handler(&c, e);
}

/* It says how many there may be, and what helps. */
START_TEST(a_full_table_says_so)
{
    static const char program[] = "the daemon has 0 programs, as many as it has handles for: free";
    static const char buffer[] = "the daemon has 1 buffers, as many as it has handles for: free";
    struct err e;
    struct request r = {.slot = NULL};
    begin();
    (void)fake_buffer(k, 0, 64, true);
    k->f.config.tenant_buffers_max = k->f.config.tenant_programs_max = 100;
    k->f.buffers.limit = 1;
    k->f.programs.limit = 0;
    r.msg.buffer_create =
        (struct msg_buffer_create){.seq = ++seq, .dtype = DTYPE_U8, .ndim = 1, .d0 = 64};
    ck_assert_int_eq(ask_for(request_buffer_create, &r, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, buffer) != NULL, "%s", e.text);
    r = (struct request){.msg.program_create = {.seq = ++seq}};
    ck_assert_int_eq(ask_for(request_program_create, &r, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, program) != NULL, "%s", e.text);
    k->f.buffers.limit = 1024;
    end();
}
END_TEST

/* A job without an owner, like the daemon's own: the refusal names no owner. */
START_TEST(a_job_that_is_seen_is_not_ended_by_everybody)
{
    begin();
    struct job *j = fake_job(k, 0);
    struct err e;
    struct request r = {.slot = NULL};
    (void)fake_submit(k, j);
    struct tenant *own = j->tenant;
    j->tenant = NULL;
    k->f.rights.look_all = true;
    k->session->key.uid = 12345;
    r.msg.cancel.job = j->id;
    ck_assert_int_eq(ask_for(request_cancel, &r, &e), ERR_PERMISSION);
    ck_assert_msg(strstr(e.text, "may be ended by those who submitted it, root") != NULL, "%s",
                  e.text);
    ck_assert_ptr_null(strstr(e.text, "tenant"));
    j->tenant = own;
    ck_assert_int_eq(ask_for(request_cancel, &r, &e), 0);
    end();
}
END_TEST

/* The device that the daemon chose. */
static unsigned create(uint64_t bytes)
{
    struct request r = {.slot = NULL};
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .out = &out};
    struct err e = ERR_INIT;
    uint32_t cursor = 0;
    const struct buffer *b;
    const struct buffer *newest = NULL;
    r.msg.buffer_create =
        (struct msg_buffer_create){.seq = ++seq, .dtype = DTYPE_U8, .ndim = 1, .d0 = bytes};
    ck_assert_msg(request_buffer_create(&c, &e) == 0, "%s", e.text);
    while ((b = idmap_next(&k->f.buffers, &cursor, NULL)) != NULL) {
        newest = b->seq == seq ? b : newest;
    }
    ck_assert_ptr_nonnull(newest);
    return newest->device;
}

/* A session's buffers lie together as long as the device itself has room for them: what would have
 * to move to the host for that is no reason to leave another device empty. */
START_TEST(what_a_device_would_move_to_the_host_is_no_room_near)
{
    begin();
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].memory = 100;
        k->device[i].spill_limit = 100;
    }
    ck_assert_uint_eq(create(60), 0);
    ck_assert_uint_eq(create(20), 0);
    ck_assert_uint_eq(create(40), 1);
    ck_assert_uint_eq(create(20), 0); /* most are there, and it has the room */
    ck_assert_uint_eq(create(60), 1); /* and the other has not */
    ck_assert_uint_eq(create(90), 0); /* both are full: the host is left */
    k->session->buffers = 0;
    end();
}
END_TEST

/* A worker that has yet to open its device takes no buffer over its tenant's limit. */
START_TEST(a_limit_holds_before_the_worker_is_open)
{
    begin();
    struct request r = {.slot = NULL};
    struct err e;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].memory = 0;
    }
    k->tenant->limits.hard = (struct amount){.bytes = 50};
    r.msg.buffer_create =
        (struct msg_buffer_create){.seq = ++seq, .dtype = DTYPE_U8, .ndim = 1, .d0 = 51};
    ck_assert_int_eq(ask_for(request_buffer_create, &r, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "wants 51 bytes on device 0 and may have 50 there") != NULL, "%s",
                  e.text);
    ck_assert_msg(strstr(e.text, "raise its memory_hard") != NULL, "%s", e.text);
    ck_assert_uint_eq(create(50), 0);
    k->session->buffers = 0;
    end();
}
END_TEST

/* New buffers and free jobs go to devices that the tenant may use, and to no other. */
START_TEST(a_tenant_has_its_devices)
{
    begin();
    struct request r = {.slot = NULL};
    struct err e;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].memory = 100;
    }
    struct buffer *before = fake_buffer(k, 0, 64, true);
    k->tenant->limits.devices = 2;
    ck_assert_uint_eq(create(10), 1);
    ck_assert_uint_eq(create(20), 1);
    r.msg.buffer_create = (struct msg_buffer_create){
        .seq = ++seq, .dtype = DTYPE_U8, .ndim = 1, .d0 = 8, .device = 1};
    ck_assert_int_eq(ask_for(request_buffer_create, &r, &e), ERR_PERMISSION);
    ck_assert_msg(strstr(e.text, "tenant uid:1000 may not use device 0") != NULL, "%s", e.text);
    struct job *any[4];
    for (unsigned i = 0; i < 4; i++) {
        any[i] = fake_job(k, -1);
        (void)fake_submit(k, any[i]);
    }
    struct job *there = fake_job(k, 0); /* with what it has there from before */
    fake_reads(there, before, 0, 64);
    (void)fake_submit(k, there);
    fake_turn(k);
    ck_assert_ptr_eq(there->device, &k->device[0]);
    ck_assert_int_eq(there->state, JOB_DISPATCHED);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_ptr_eq(any[i]->device, &k->device[1]);
        fake_done(k, any[i], 0);
    }
    fake_done(k, there, 0);
    fake_turn(k);
    k->tenant->limits.devices = 4; /* there is none of that number */
    r.msg.buffer_create.device = 0;
    ck_assert_int_eq(ask_for(request_buffer_create, &r, &e), ERR_NO_DEVICE);
    ck_assert_msg(strstr(e.text, "no device that tenant uid:1000 may use serves") != NULL, "%s",
                  e.text);
    k->session->buffers = 0;
    end();
}
END_TEST

static int greet(uint8_t number, uint32_t uid, struct err *e)
{
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {number};
    struct session *s = NULL;
    struct request r = {.peer = {.pipe = number, .local = true, .uid = uid},
                        .kind = MSG_KIND_HELLO};
    r.msg.hello = (struct msg_hello){
        .major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .name = bytes_str("caller")};
    capbuf_reset(&out);
    err_init(e);
    return session_hello(&k->f, &r, &out, &s, e);
}

/* A user with a session keeps it, and administrators always come in. */
START_TEST(users_without_a_section_may_be_refused)
{
    struct err e;
    const uint32_t uid = (uint32_t)geteuid() + 7001;
    begin();
    ck_assert_int_eq(greet(1, uid, &e), 0);
    k->f.rules.others.barred = true;
    ck_assert_int_eq(greet(2, uid + 1, &e), ERR_PERMISSION);
    ck_assert_msg(strstr(e.text, "section [tenant others] has connect = no, and no other section "
                                 "names this user") != NULL,
                  "%s", e.text);
    ck_assert_int_eq(greet(3, 0, &e), 0);
    ck_assert_int_eq(greet(1, uid, &e), 0);
    ck_assert_uint_eq(k->f.session_count, 2);
    while (k->f.sessions != NULL) {
        session_end(&k->f, k->f.sessions);
    }
    end();
}
END_TEST

/* Another tenant's job looks as if it were not there. */
START_TEST(a_job_of_another_tenant_is_not_there)
{
    begin();
    static const request_fn asks[] = {request_explain, request_job_info, request_cancel};
    struct request r = {.slot = NULL};
    struct err e;
    struct err none;
    struct job *j = fake_job(k, 0);
    (void)fake_submit(k, j);
    struct tenant *own = k->session->tenant;
    k->session->tenant = tenant_obtain(&k->f.tenants, 1001);
    k->session->key.uid = 12345;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        r.msg.explain.job = j->id + 1;
        ck_assert_int_eq(ask_for(asks[i], &r, &none), ERR_NOT_FOUND);
        r.msg.explain.job = j->id;
        ck_assert_int_eq(ask_for(asks[i], &r, &e), ERR_NOT_FOUND);
        ck_assert_uint_eq(strlen(e.text), strlen(none.text)); /* but for the number */
    }
    k->session->tenant->limits.roles = ROLE_SEE;
    k->session->client.local = true;
    ck_assert_int_eq(ask_for(request_explain, &r, &e), 0);
    ck_assert_int_eq(ask_for(request_cancel, &r, &e), ERR_PERMISSION);
    k->session->tenant->limits.roles = ROLE_CANCEL;
    ck_assert_int_eq(ask_for(request_cancel, &r, &e), 0);
    ck_assert_int_eq(k->state[r.msg.explain.job], JOB_CANCELLED);
    k->session->tenant = own;
    end();
}
END_TEST

static void refused(uint64_t bytes, const char *says)
{
    struct request r = {.slot = NULL};
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .out = &out};
    struct err e = ERR_INIT;
    r.msg.buffer_create =
        (struct msg_buffer_create){.seq = ++seq, .dtype = DTYPE_U8, .ndim = 1, .d0 = bytes};
    ck_assert_int_eq(request_buffer_create(&c, &e), ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(e.text, says) != NULL, "%s", e.text);
}

/* Freeing buffers is the advice where it helps, and only there. */
START_TEST(a_buffer_over_the_devices_limit_hears_the_limit)
{
    begin();
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].memory = 1000;
        k->device[i].max_alloc = 400;
        k->device[i].spill_limit = 0;
    }
    refused(401, "at most 400 bytes to one buffer (its limit for one allocation): split it");
    refused(UINT64_MAX / 4, "split it");
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].buffer_bytes = 700;
    }
    refused(350, "free buffers");
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].buffer_bytes = 0;
        k->device[i].max_alloc = 0; /* not known */
    }
    refused(1001, "at most 1000 bytes to one buffer: split it");
    end();
}
END_TEST

/* ---- variables of modules -------------------------------------------------------------------- */

static void begin_module(void)
{
    begin();
    k->module->owner = k->session;
    k->module->id = idmap_add(&k->f.modules, k->module);
}

static int open_variable(const char *name, uint64_t bytes)
{
    struct request r = {.slot = NULL};
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .out = &out};
    r.msg.buffer_create = (struct msg_buffer_create){.dtype = DTYPE_U8,
                                                     .ndim = 1,
                                                     .d0 = bytes,
                                                     .module = k->module->id,
                                                     .variable = bytes_str(name)};
    capbuf_reset(&out);
    return request_buffer_create(&c, NULL);
}

/* What the worker says of the variable opened last. */
static void variable_answered(int code)
{
    struct buffer *b = k->module->variables->buffer;
    const struct msg_w_buffer m = {
        .id = b->handle, .code = (uint64_t)code, .text = bytes_str("as the worker says")};
    buffer_answered(&k->f, &k->device[b->device], &m);
}

static struct job *launch(unsigned buffers)
{
    struct job *j = fake_job(k, 0);
    for (unsigned i = 0; i < buffers; i++) {
        fake_reads(j, fake_buffer(k, 0, 64, true), 0, 64);
    }
    fake_launches(k, j, "x");
    (void)fake_submit(k, j);
    return j;
}

static void cancel(struct job *j)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "by the test");
    job_conclude(&k->f, j, JOB_CANCELLED, &e);
}

/* Nothing is joined while one of the module's jobs has no room for another buffer. */
START_TEST(a_variable_waits_for_jobs_that_are_full)
{
    begin_module();
    struct job *small = launch(1);
    struct job *full = launch(WORK_USES_MAX);
    ck_assert_int_eq(open_variable("v", 64), ERR_BUSY);
    ck_assert_ptr_null(k->module->variables);
    ck_assert_uint_eq(k->session->buffers, 0);
    ck_assert_uint_eq(small->work.use_count, 1);
    cancel(full);
    ck_assert_int_eq(open_variable("v", 64), 0);
    ck_assert_uint_eq(small->work.use_count, 2);
    ck_assert_uint_eq(k->module->variables->buffer->users, 1);
    variable_answered(0);
    cancel(small);
    buffer_drop(&k->f, k->module->variables->buffer);
    end();
}
END_TEST

START_TEST(a_variable_looks_at_each_job_once)
{
    enum { JOBS = 50 };
    struct job *jobs[JOBS];
    begin_module();
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = launch(0);
    }
    const uint64_t done = k->f.work.done;
    ck_assert_int_eq(open_variable("v", 64), 0);
    ck_assert_uint_eq(k->f.work.done - done, JOBS);
    ck_assert_uint_eq(k->module->variables->buffer->users, JOBS);
    variable_answered(0);
    for (unsigned i = 0; i < JOBS; i++) {
        cancel(jobs[i]);
    }
    buffer_drop(&k->f, k->module->variables->buffer);
    end();
}
END_TEST

static void expect_explained(uint64_t id, const char *text)
{
    struct msg_explanation m;
    char told[PROTO_TEXT_MAX + 1];
    ck_assert_int_eq(ask(request_explain, id, NULL), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_explanation, capbuf_view(&out), &m, NULL), 0);
    ck_assert(bytes_to_str(m.text, told, sizeof told));
    ck_assert_msg(strstr(told, text) != NULL, "%s", told);
}

/* A job that runs or waits hears that the worker lacks what it needs of the host. */
START_TEST(a_job_hears_that_its_worker_starves)
{
    begin();
    struct device *d = &k->device[0];
    k->f.device_count = 1;
    k->f.config.window = 1;
    struct job *j[2];
    for (unsigned i = 0; i < 2; i++) {
        j[i] = fake_job(k, 0);
        j[i]->session = k->session;
        (void)fake_submit(k, j[i]);
    }
    fake_turn(k);
    ck_assert_int_eq(j[1]->state, JOB_QUEUED);
    d->worker = 7;
    d->beat_ns = fake_now();
    d->silence = (struct silence){
        .beat_ns = d->beat_ns, .looked_ns = d->beat_ns + 1, .lack = LACKS_PROCESSOR};
    fake_pass(4 * NS_PER_S);
    for (unsigned i = 0; i < 2; i++) {
        expect_explained(j[i]->id, "; the worker of device 0 gives no heartbeat for 4.0 s: its "
                                   "thread waits for a processor");
    }
    d->worker = 0;
    k->f.device_count = FAKE_DEVICES;
    fake_done(k, j[0], 0);
    fake_turn(k);
    fake_done(k, j[1], 0);
    end();
}
END_TEST

/* A batch job that waits for another one hears that, as long as other jobs are there. */
START_TEST(a_batch_job_hears_why_it_waits)
{
    begin();
    struct job *j[3];
    for (unsigned i = 0; i < 3; i++) {
        j[i] = fake_job(k, 0);
        j[i]->job_class = i == 0 ? CLASS_INTERACTIVE : CLASS_BATCH;
        j[i]->sched.rank = job_rank(j[i]);
        j[i]->session = k->session;
        (void)fake_submit(k, j[i]);
    }
    fake_turn(k);
    ck_assert_int_eq(j[1]->state, JOB_DISPATCHED);
    ck_assert_int_eq(j[2]->state, JOB_QUEUED);
    expect_explained(j[2]->id, "waits for the one in flight, beside other classes");
    fake_done(k, j[0], 0);
    fake_turn(k);
    expect_explained(j[2]->id, "waits for the one in flight, beside other classes");
    fake_pass(LIVELY_NS);
    k->kicked = true;
    fake_turn(k);
    ck_assert_int_eq(j[2]->state, JOB_DISPATCHED);
    fake_done(k, j[1], 0);
    fake_done(k, j[2], 0);
    end();
}
END_TEST

/* A wrong name or size is told to who gave it. Jobs that launch the module's kernels, submitted
 * before or since, know nothing of it; one that named the handle fails with it. */
START_TEST(a_refused_variable_harms_no_job)
{
    begin_module();
    k->device[0].inflight_count = 1000; /* nothing is dispatched yet */
    struct job *before = launch(0);
    ck_assert_int_eq(open_variable("typo", 64), 0);
    struct buffer *b = k->module->variables->buffer;
    const uint64_t handle = b->handle;
    struct job *since = fake_job(k, 0);
    fake_launches(k, since, "x");
    fake_writes(since, b, 0, 64);
    (void)fake_submit(k, since);
    struct job *naming = fake_job(k, 0);
    fake_launches(k, naming, "x");
    fake_reads(naming, b, 0, 64);
    *work_add_ref(&naming->work) = (struct work_ref){.tag = REF_BUFFER, .id = handle};
    const uint64_t id = fake_submit(k, naming);
    ck_assert_uint_eq(b->users, 3);
    variable_answered(ERR_NOT_FOUND);
    ck_assert_int_eq(buffer_find(&k->f.buffers, handle, k->tenant, &b, NULL), ERR_STALE_HANDLE);
    ck_assert_uint_eq(before->work.use_count + since->work.use_count, 0);
    k->device[0].inflight_count = 0;
    k->kicked = true;
    fake_turn(k);
    ck_assert_int_eq(before->state, JOB_DISPATCHED);
    ck_assert_int_eq(since->state, JOB_DISPATCHED);
    fake_done(k, before, 0);
    fake_done(k, since, 0);
    k->kicked = true;
    fake_turn(k);
    ck_assert_int_eq(k->state[before->id], JOB_DONE);
    ck_assert_int_eq(k->state[since->id], JOB_DONE);
    ck_assert_int_eq(k->error[id].code, ERR_BUFFER_LOST);
    ck_assert_ptr_null(k->module->variables);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, handle));
    end();
}
END_TEST

/* Its memory is the module's: whatever size somebody claims, nobody pays for it. */
START_TEST(a_variable_is_charged_to_nobody)
{
    begin_module();
    ck_assert(tenant_charge(k->tenant, 0, 1000, 0));
    k->device[0].buffer_bytes = 1000;
    for (unsigned i = 0; i < 3; i++) {
        const char *const names[] = {"a", "b", "c"};
        ck_assert_int_eq(open_variable(names[i], INT64_MAX), 0);
        ck_assert_uint_eq(k->device[0].buffer_bytes, 1000);
        ck_assert_uint_eq(k->tenant->buffer_bytes, 1000);
    }
    for (unsigned i = 0; i < 2; i++) {
        variable_answered(ERR_ARG_SHAPE);
    }
    variable_answered(0);
    buffer_drop(&k->f, k->module->variables->buffer);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 1000);
    ck_assert_uint_eq(k->tenant->device_bytes[0], 1000);
    end();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {letting_go_of_what_an_earlier_daemon_gave_out,
                                  letting_go_of_what_was_opened_by_name_before,
                                  a_stranger_learns_nothing_of_handles,
                                  sealing_what_is_sealed,
                                  what_was_not_copied_is_not_restored,
                                  many_lost_buffers_are_lost_at_once,
                                  what_a_given_up_device_was_to_make_is_answered,
                                  opening_has_an_end,
                                  a_full_table_says_so,
                                  a_job_that_is_seen_is_not_ended_by_everybody,
                                  what_a_device_would_move_to_the_host_is_no_room_near,
                                  a_limit_holds_before_the_worker_is_open,
                                  a_tenant_has_its_devices,
                                  a_job_of_another_tenant_is_not_there,
                                  users_without_a_section_may_be_refused,
                                  a_buffer_over_the_devices_limit_hears_the_limit,
                                  a_variable_waits_for_jobs_that_are_full,
                                  a_variable_looks_at_each_job_once,
                                  a_batch_job_hears_why_it_waits,
                                  a_job_hears_that_its_worker_starves,
                                  a_refused_variable_harms_no_job,
                                  a_variable_is_charged_to_nobody};
    Suite *suite = suite_create("requests");
    TCase *tcase = tcase_create("requests");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, a_lost_buffer_takes_no_room_and_all_are_told_once, 0, 3);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

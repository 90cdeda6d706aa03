/* Snapshots of pools, with the test as the workers and the clients: it is the link and the
 * listener (front_io). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/views/snapshot.h"
#include "daemon/front/workers/link.h"
#include "proto/codec.h"
#include "proto/snapshot.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define LIVE 3u

static struct fake *k;
static unsigned replies;
static unsigned drops;
static unsigned asks[FAKE_DEVICES]; /* that a worker got */
static uint64_t nonce;              /* of the last one */
static struct capbuf last;          /* the last reply */

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    ck_assert_ptr_nonnull(slot);
    replies++;
    capbuf_reset(&last);
    ck_assert(capbuf_append(&last, message.data, message.size));
}

static void on_drop(struct listener *l, struct listener_slot *slot)
{
    (void)l;
    ck_assert_ptr_nonnull(slot);
    drops++;
}

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        asks[i] += schema == &schema_msg_f_snapshot && l == k->device[i].link;
    }
    if (schema == &schema_msg_f_snapshot) {
        nonce = ((const struct msg_f_snapshot *)msg)->nonce;
    }
    return fake_send(l, schema, msg, fds, e);
}

static void enter(struct session *s)
{
    HASH_ADD(hh, k->f.sessions, key, sizeof s->key, s);
}

static void setup(void)
{
    k = fake_create();
    k->f.io.reply = on_reply;
    k->f.io.drop = on_drop;
    k->f.io.send = on_send;
    k->session->client.local = true;
    k->session->key.uid = 1000;
    enter(k->session);
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].progress = WORKER_UP;
        asks[i] = 0;
    }
    capbuf_init(&last, PROTO_MESSAGE_MAX);
    replies = drops = 0;
    k->f.wake_ns = NS_NEVER;
}

static void teardown(void)
{
    snapshot_finish_all(&k->f);
    ck_assert_uint_eq(k->f.snapshot_count, 0);
    HASH_CLEAR(hh, k->f.sessions);
    capbuf_finish(&last);
    fake_destroy(k);
}

static void take(uint64_t device, uint64_t timeout_ns)
{
    static char slot;
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->slot = (struct listener_slot *)&slot;
    r->kind = MSG_KIND_POOL_TAKE;
    r->msg.pool_take =
        (struct msg_pool_take){.device = device, .detail = 1, .timeout_ns = timeout_ns};
    snapshot_take(&k->f, k->session, r);
}

/* A snapshot with these pieces and events; one tenant: number 1 is the fake's, 2 another's. */
static int memory_of(const struct snapshot_piece *pieces, uint32_t piece_count,
                     const struct snapshot_event *events, uint32_t event_count)
{
    struct memfd m = MEMFD_NONE;
    size_t size = (size_t)snapshot_bytes(2, event_count, piece_count);
    ck_assert_int_eq(memfd_create_sealed("test", size, &m, NULL), 0);
    struct snapshot_room room = snapshot_room(m.data, 2, event_count);
    *room.head = (struct snapshot_head){.version = SNAPSHOT_VERSION,
                                        .meters = 2,
                                        .events = event_count,
                                        .pieces = piece_count,
                                        .pieces_all = piece_count};
    room.head->numbers.used = 4096;
    for (uint32_t i = 0; i < 2; i++) {
        room.meters[i] = (struct snapshot_meter){
            .scope = SNAPSHOT_TENANT, .index = i + 1, .what = i == 0 ? 1001 : 2001, .used = i + 1};
    }
    if (piece_count > 0) {
        memcpy(room.pieces, pieces, piece_count * sizeof *pieces);
    }
    if (event_count > 0) {
        memcpy(room.events, events, event_count * sizeof *events);
    }
    int fd = fcntl(m.fd, F_DUPFD_CLOEXEC, 0);
    memfd_finish(&m);
    return fd;
}

static void tell(unsigned device, uint64_t number, int fd)
{
    struct msg_w_snapshot m = {.nonce = number};
    snapshot_received(&k->f, &k->device[device], &m, fd);
}

/* ---- tables ---- */

static struct msg_table table;

static struct msg_table *told(void)
{
    struct err e = ERR_INIT;
    int rc = proto_decode(&schema_msg_table, capbuf_view(&last), &table, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    return &table;
}

static struct proto_cell cell_of(const struct msg_table *t, unsigned row, const char *name)
{
    struct proto_iter columns = proto_iter_of(t->columns);
    struct proto_iter rows = proto_iter_of(t->rows);
    struct proto_column column;
    struct proto_row r;
    struct proto_cell cell = {0};
    unsigned at = 0;
    while (proto_list_next(&columns, &schema_column, &column) &&
           !bytes_equal_str(column.name, name)) {
        at++;
    }
    ck_assert_msg(at < t->columns.count, "no column %s", name);
    for (unsigned i = 0; i <= row; i++) {
        ck_assert(proto_list_next(&rows, &schema_row, &r));
    }
    struct proto_iter cells = proto_iter_of(r.cells);
    for (unsigned i = 0; i <= at; i++) {
        ck_assert(proto_list_next(&cells, &schema_cell, &cell));
    }
    return cell;
}

static void ck_text(const struct msg_table *t, unsigned row, const char *column, const char *text)
{
    struct proto_cell cell = cell_of(t, row, column);
    ck_assert_msg(bytes_equal_str(cell.text, text), "%s: %.*s instead of %s", column,
                  (int)cell.text.size, (const char *)cell.text.data, text);
}

static int read_part(const struct session *s, uint64_t snapshot, unsigned part, uint64_t first,
                     uint64_t count)
{
    struct err e = ERR_INIT;
    struct request r = {.kind = MSG_KIND_POOL_READ};
    r.msg.pool_read = (struct msg_pool_read){
        .picture = snapshot, .part = part, .device = 0, .first = first, .count = count};
    struct request_context c = {.f = &k->f, .s = (struct session *)s, .r = &r, .out = &last};
    capbuf_reset(&last);
    return request_pool_read(&c, &e);
}

/* ---- */

START_TEST(all_devices_are_waited_for)
{
    take(0, 0);
    ck_assert_uint_eq(asks[0] + asks[1], FAKE_DEVICES);
    ck_assert_uint_eq(replies, 0);
    ck_assert_uint_lt(k->f.wake_ns, NS_NEVER);
    tell(0, nonce, memory_of(NULL, 0, NULL, 0));
    ck_assert_uint_eq(replies, 0);
    tell(1, nonce, memory_of(NULL, 0, NULL, 0));
    ck_assert_uint_eq(replies, 1);
    ck_assert_uint_eq(told()->rows.count, 2);
    ck_assert_uint_eq(cell_of(&table, 1, "used").value, 4096);
    ck_assert_uint_eq(cell_of(&table, 1, "picture").value, nonce);
    ck_text(&table, 0, "note", "");
    ck_text(&table, 0, "hit_rate", "-"); /* nothing was allocated */
}
END_TEST

/* A worker that stands still keeps nobody waiting, and does not get more and more frames. */
START_TEST(a_silent_worker_is_named)
{
    take(0, 50 * NS_PER_MS);
    tell(1, nonce, memory_of(NULL, 0, NULL, 0));
    snapshot_watch(&k->f, fake_now());
    ck_assert_uint_eq(replies, 0);
    snapshot_watch(&k->f, fake_now() + 51 * NS_PER_MS);
    ck_assert_uint_eq(replies, 1);
    ck_text(told(), 0, "note", "its worker did not answer within 50 ms");
    ck_text(&table, 0, "used", "-");
    ck_text(&table, 1, "note", "");
    for (unsigned i = 0; i < 20; i++) {
        take(1, 50 * NS_PER_MS);
        snapshot_watch(&k->f, fake_now() + 51 * NS_PER_MS);
    }
    ck_assert_uint_eq(replies, 21);
    ck_assert_uint_le(asks[0], SNAPSHOT_ASKED_MAX);
    ck_assert_uint_le(k->f.snapshot_count, SNAPSHOTS_TENANT_MAX);
    tell(0, 1, memory_of(NULL, 0, NULL, 0)); /* late: nobody takes it */
    ck_assert_uint_eq(replies, 21);
    take(1, 0); /* and it is asked again */
    ck_assert_uint_eq(asks[0], SNAPSHOT_ASKED_MAX + 1);
}
END_TEST

START_TEST(a_lost_worker_is_named)
{
    take(0, 0);
    tell(1, nonce, memory_of(NULL, 0, NULL, 0));
    snapshot_device_lost(&k->f, &k->device[0]);
    ck_assert_uint_eq(replies, 1);
    ck_text(told(), 0, "note", "its worker ended");
    k->device[0].link = NULL;
    k->device[0].state = DEVICE_WAITING;
    take(1, 0);
    ck_assert_uint_eq(replies, 2);
    ck_text(told(), 0, "note", "it is restarting");
    k->device[0].link = (struct link *)&k->device[0];
}
END_TEST

/* Whatever a worker sends in place of a snapshot is told as its fault. */
START_TEST(bad_snapshots_are_refused)
{
    struct memfd m = MEMFD_NONE;
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(memfd_create_sealed("small", 8, &m, NULL), 0);
    int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(unsealed, 1 << 20), 0);
    int lying = memory_of(NULL, 0, NULL, 0);
    uint32_t many = SNAPSHOT_PIECES_MAX;
    ck_assert_int_eq(pwrite(lying, &many, sizeof many, offsetof(struct snapshot_head, pieces)),
                     sizeof many);
    struct memfd huge = MEMFD_NONE;
    ck_assert_int_eq(memfd_create_sealed("huge", (size_t)1 << 32, &huge, NULL), 0);
    const int fds[] = {-1, pipes[0], dup(m.fd), unsealed, lying, dup(huge.fd)};
    memfd_finish(&m);
    memfd_finish(&huge);
    for (unsigned i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        take(1, 0);
        tell(0, nonce, fds[i]);
        ck_assert_uint_eq(replies, i + 1);
        struct proto_cell note = cell_of(told(), 0, "note");
        ck_assert_msg(note.text.size > 0, "%u was believed", i);
        ck_assert_int_eq(read_part(k->session, nonce, POOL_PIECES, 0, 10), ERR_NOT_FOUND);
    }
    (void)close(pipes[1]);
    for (unsigned i = 1; i < sizeof fds / sizeof fds[0]; i++) {
        ck_assert_int_eq(fcntl(fds[i], F_GETFD), -1); /* none is left open */
    }
}
END_TEST

START_TEST(a_worker_says_why_not)
{
    struct msg_w_snapshot m = {.code = ERR_BUSY, .text = bytes_str("16 snapshots are being made")};
    take(1, 0);
    m.nonce = nonce;
    snapshot_received(&k->f, &k->device[0], &m, -1);
    ck_text(told(), 0, "note", "its worker: 16 snapshots are being made");
}
END_TEST

/* Pieces: own, two of others side by side, free, unknown, another's again. */
static uint64_t take_pieces(struct buffer *own)
{
    const struct snapshot_piece pieces[] = {
        {.at = 0, .size = 256, .state = LIVE, .tenant = 1, .owner = own->handle, .kind = 1},
        {.at = 256, .size = 256, .state = LIVE, .tenant = 2},
        {.at = 512, .size = 512, .state = LIVE, .tenant = 2, .owner = 99, .kind = 1},
        {.at = 1024, .size = 256, .state = 1},
        {.at = 1280, .size = 256, .state = LIVE, .tenant = UINT16_MAX},
        {.at = 2048, .size = 256, .state = LIVE, .tenant = 2},
    };
    const struct snapshot_event events[] = {{.size = 1, .tenant = 1, .kind = 0},
                                            {.size = 2, .tenant = 2, .kind = 0},
                                            {.at = 7, .kind = 13},
                                            {.size = 3, .kind = 4},
                                            {.size = 4, .tenant = 1, .kind = 2}};
    (void)strcpy(own->label, "weights");
    take(1, 0);
    tell(0, nonce, memory_of(pieces, 6, events, 5));
    return nonce;
}

START_TEST(a_tenant_sees_its_own)
{
    struct buffer *b = fake_buffer(k, 0, 256, true);
    uint64_t snapshot = take_pieces(b);
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_PIECES, 0, 100), 0);
    ck_assert_uint_eq(told()->rows.count, 5);
    ck_text(&table, 0, "label", "weights");
    ck_text(&table, 0, "tenant", k->tenant->name);
    ck_assert_uint_eq(cell_of(&table, 0, "id").value, b->handle);
    ck_assert_uint_eq(cell_of(&table, 1, "entries").value, 2); /* no border between others' */
    ck_assert_uint_eq(cell_of(&table, 1, "size").value, 768);
    for (unsigned i = 1; i < 5; i++) {
        ck_text(&table, i, "tenant", "");
        ck_text(&table, i, "label", "");
        ck_text(&table, i, "id", "-");
    }
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_EVENTS, 0, 100), 0);
    ck_assert_uint_eq(told()->rows.count, 3); /* its own and the stamp */
    ck_text(&table, 1, "kind", "stamp");
    ck_assert_uint_eq(cell_of(&table, 2, "size").value, 4);
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_METERS, 0, 0), 0);
    ck_assert_uint_eq(told()->rows.count, 1);
    ck_text(&table, 0, "name", k->tenant->name);
    fake_drop(k, b);
}
END_TEST

START_TEST(an_administrator_sees_all)
{
    struct buffer *b = fake_buffer(k, 0, 256, true);
    struct tenant *other = tenant_obtain(&k->f.tenants, 2000);
    k->f.rights.admins.uid[k->f.rights.admins.count++] = 1000;
    uint64_t snapshot = take_pieces(b);
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_PIECES, 0, 100), 0);
    ck_assert_uint_eq(told()->rows.count, 6);
    ck_text(&table, 1, "tenant", other->name);
    ck_text(&table, 4, "tenant", "");
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_EVENTS, 0, 100), 0);
    ck_assert_uint_eq(told()->rows.count, 5);
    ck_text(&table, 1, "tenant", other->name);
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_METERS, 0, 0), 0);
    ck_assert_uint_eq(told()->rows.count, 2);
    fake_drop(k, b);
}
END_TEST

/* A snapshot is its session's; a handle that was freed meanwhile tells nothing. */
START_TEST(a_snapshot_is_its_sessions)
{
    struct buffer *b = fake_buffer(k, 0, 256, true);
    struct session other = *k->session;
    uint64_t snapshot = take_pieces(b);
    other.id++;
    ck_assert_int_eq(read_part(&other, snapshot, POOL_PIECES, 0, 1), ERR_NOT_FOUND);
    ck_assert_int_eq(read_part(k->session, snapshot + 1, POOL_PIECES, 0, 1), ERR_NOT_FOUND);
    ck_assert_int_eq(read_part(k->session, snapshot, 0, 0, 1), ERR_INVALID);
    fake_drop(k, b);
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_PIECES, 0, 1), 0);
    ck_text(told(), 0, "label", "");
    snapshot_watch(&k->f, fake_now() + 61 * NS_PER_S);
    ck_assert_int_eq(read_part(k->session, snapshot, POOL_PIECES, 0, 1), ERR_NOT_FOUND);
}
END_TEST

START_TEST(parts_are_bounded)
{
    uint32_t count = 3 * PROTO_POOL_ROWS_MAX / 2;
    struct snapshot_piece *pieces = calloc(count, sizeof *pieces);
    for (uint32_t i = 0; i < count; i++) {
        pieces[i] = (struct snapshot_piece){.at = 256 * i, .size = 256, .state = 1};
    }
    take(1, 0);
    tell(0, nonce, memory_of(pieces, count, NULL, 0));
    static const uint64_t ask[][3] = {/* first, count, rows */
                                      {0, UINT64_MAX, PROTO_POOL_ROWS_MAX},
                                      {PROTO_POOL_ROWS_MAX, UINT64_MAX, PROTO_POOL_ROWS_MAX / 2},
                                      {10, 5, 5},
                                      {UINT64_MAX, UINT64_MAX, 0},
                                      {UINT32_MAX + UINT64_C(1), 1, 0},
                                      {0, 0, 0}};
    for (unsigned i = 0; i < sizeof ask / sizeof ask[0]; i++) {
        ck_assert_int_eq(read_part(k->session, nonce, POOL_PIECES, ask[i][0], ask[i][1]), 0);
        ck_assert_uint_eq(told()->rows.count, ask[i][2]);
    }
    free(pieces);
}
END_TEST

/* Those who do not take their answers are refused, others go on. */
START_TEST(too_many_at_once)
{
    for (unsigned i = 0; i < SNAPSHOTS_TENANT_MAX; i++) {
        take(1 + i % 2, 0);
    }
    ck_assert_uint_eq(replies, 0);
    take(1, 0);
    ck_assert_uint_eq(replies, 1);
    struct msg_error m;
    ck_assert_int_eq(proto_decode(&schema_msg_error, capbuf_view(&last), &m, NULL), 0);
    ck_assert_int_eq(m.code, ERR_BUSY);
    take(99, 0);
    ck_assert_int_eq(proto_decode(&schema_msg_error, capbuf_view(&last), &m, NULL), 0);
    ck_assert_int_eq(m.code, ERR_NOT_FOUND);
}
END_TEST

START_TEST(a_session_that_left_is_not_answered)
{
    take(1, 0);
    HASH_CLEAR(hh, k->f.sessions);
    tell(0, nonce, memory_of(NULL, 0, NULL, 0));
    ck_assert_uint_eq(replies, 0);
    ck_assert_uint_eq(drops, 1);
    ck_assert_uint_eq(k->f.snapshot_count, 0);
    take(1, 0); /* still waiting when the daemon ends */
    snapshot_finish_all(&k->f);
    ck_assert_uint_eq(drops, 1); /* it has no listener any more */
}
END_TEST

SUITE_MAIN_IN("snapshot", setup, teardown, all_devices_are_waited_for, a_silent_worker_is_named,
              a_lost_worker_is_named, bad_snapshots_are_refused, a_worker_says_why_not,
              a_tenant_sees_its_own, an_administrator_sees_all, a_snapshot_is_its_sessions,
              parts_are_bounded, too_many_at_once, a_session_that_left_is_not_answered)

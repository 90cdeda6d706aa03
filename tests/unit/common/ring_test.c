#include "common/ring.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

#define SIZE 1024u

static struct ring_control *control;
static uint8_t *data;
static struct ring_producer p;
static struct ring_consumer c;
static struct err e;

static void ring_open(void)
{
    control = mmap(NULL, sizeof *control + SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    ck_assert_ptr_ne(control, MAP_FAILED);
    data = (uint8_t *)(control + 1);
    ring_producer_init(&p, control, data, SIZE);
    ring_consumer_init(&c, control, data, SIZE);
    e = ERR_INIT;
}

static void ring_close(void)
{
    ck_assert_int_eq(munmap(control, sizeof *control + SIZE), 0);
}

static int put(uint32_t id, const void *bytes, size_t size)
{
    return ring_put(&p, id, bytes_of(bytes, size / 3),
                    bytes_of((const uint8_t *)bytes + size / 3, size - size / 3), &e);
}

START_TEST(a_record_comes_out_as_it_went_in)
{
    uint8_t out[SIZE];
    uint32_t id = 0;
    uint32_t size = 0;
    ring_open();
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 0);
    ck_assert_int_eq(put(7, "seven", 5), 1);
    ck_assert_int_eq(put(8, "", 0), 1);
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 0); /* not published */
    (void)ring_publish(&p);
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 1);
    ck_assert_uint_eq(id, 7);
    ck_assert_uint_eq(size, 5);
    ring_take(&c, size, out);
    ck_assert_mem_eq(out, "seven", 5);
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 1);
    ck_assert_uint_eq(id, 8);
    ck_assert_uint_eq(size, 0);
    ring_take(&c, size, out);
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 0);
    ring_close();
}
END_TEST

START_TEST(a_full_ring_takes_no_more_until_room_is_released)
{
    uint8_t out[SIZE];
    uint8_t in[100] = {1};
    uint32_t id = 0;
    uint32_t size = 0;
    unsigned count = 0;
    ring_open();
    while (put(count, in, sizeof in) == 1) {
        count++;
    }
    ck_assert_uint_eq(count, SIZE / ring_space(sizeof in));
    (void)ring_publish(&p);
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 1);
    ring_take(&c, size, out);
    ck_assert_int_eq(put(9, in, sizeof in), 0); /* taken, but its room was not given back */
    (void)ring_release(&c);
    ck_assert_int_eq(put(9, in, sizeof in), 1);
    ck_assert_int_eq(put(9, in, sizeof in), 0);
    ck_assert_int_eq(put(9, data, ring_record_max(SIZE) + 1), ERR_LIMIT);
    ring_close();
}
END_TEST

/* ---- against a model ----------------------------------------------------------------------- */

#define MODEL 64

struct model {
    struct {
        uint32_t id;
        uint32_t size;
        uint8_t bytes[SIZE];
    } at[MODEL];
    unsigned first;
    unsigned count;
};

static void model_put(struct model *m, unsigned *seed)
{
    unsigned slot = (m->first + m->count) % MODEL;
    uint32_t size = (uint32_t)rand_r(seed) % (ring_record_max(SIZE) + 1);
    size = rand_r(seed) % 4 != 0 ? size % 48 : size;
    for (uint32_t i = 0; i < size; i++) {
        m->at[slot].bytes[i] = (uint8_t)rand_r(seed);
    }
    m->at[slot].id = (uint32_t)rand_r(seed);
    m->at[slot].size = size;
    if (m->count < MODEL && put(m->at[slot].id, m->at[slot].bytes, size) == 1) {
        m->count++;
    }
    (void)ring_publish(&p);
}

static void model_take(struct model *m)
{
    uint8_t out[SIZE];
    uint32_t id = 0;
    uint32_t size = 0;
    int rc = ring_next(&c, &id, &size, &e);
    ck_assert_int_eq(rc, m->count > 0 ? 1 : 0);
    if (rc == 1) {
        ring_take(&c, size, out);
        ck_assert_uint_eq(id, m->at[m->first].id);
        ck_assert_uint_eq(size, m->at[m->first].size);
        ck_assert_mem_eq(out, m->at[m->first].bytes, size);
        m->first = (m->first + 1) % MODEL;
        m->count--;
    }
}

START_TEST(it_is_a_queue)
{
    static struct model m;
    ring_open();
    for (unsigned seed = 1; seed <= 20; seed++) {
        unsigned state = seed;
        for (int i = 0; i < 2000; i++) {
            switch (rand_r(&state) % 3) {
            case 0:
                model_take(&m);
                break;
            case 1:
                (void)ring_release(&c);
                break;
            default:
                model_put(&m, &state);
                break;
            }
        }
    }
    ring_close();
}
END_TEST

/* Positions wrap at 2^32, which no test would live to see. */
START_TEST(positions_wrap)
{
    static struct model m;
    unsigned state = 5;
    ring_open();
    uint32_t near = UINT32_MAX - 255;
    atomic_store(&control->head, near);
    atomic_store(&control->tail, near);
    p.head = p.published = p.tail = near;
    c.head = c.tail = c.released = near;
    for (int i = 0; i < 1000; i++) {
        model_put(&m, &state);
        model_take(&m);
        (void)ring_release(&c);
    }
    ck_assert_uint_lt(p.head, near);
    ring_close();
}
END_TEST

/* ---- nonsense ------------------------------------------------------------------------------ */

static void consumer_refuses(void)
{
    uint32_t id = 0;
    uint32_t size = 0;
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), ERR_PROTOCOL);
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), ERR_PROTOCOL); /* for good */
    ck_assert(!ring_sleep(&c));
}

static void take_one(void)
{
    uint8_t out[SIZE];
    uint32_t id = 0;
    uint32_t size = 0;
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 1);
    ring_take(&c, size, out);
    (void)ring_release(&c);
}

START_TEST(heads_that_jump_are_refused)
{
    static const uint32_t jumps[] = {SIZE + 8, 1u << 31, UINT32_MAX - 7, 4, 17};
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        ring_open();
        ck_assert_int_eq(put(1, "abc", 3), 1);
        (void)ring_publish(&p);
        take_one();
        atomic_store(&control->head, c.tail + jumps[i]);
        consumer_refuses();
        ring_close();
    }
}
END_TEST

START_TEST(a_head_that_runs_backwards_is_refused)
{
    uint32_t id = 0;
    uint32_t size = 0;
    uint8_t out[SIZE];
    ring_open();
    ck_assert_int_eq(put(1, "abc", 3), 1);
    ck_assert_int_eq(put(2, "abc", 3), 1);
    (void)ring_publish(&p);
    take_one();
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 1);
    ring_take(&c, size, out);
    atomic_store(&control->head, c.tail - 16); /* over records that were read and not released */
    consumer_refuses();
    ring_close();
}
END_TEST

START_TEST(lengths_beyond_what_was_published_are_refused)
{
    static const uint32_t lengths[] = {SIZE, SIZE / 2, 17, UINT32_MAX, UINT32_MAX - 7, 1u << 31};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        ring_open();
        ck_assert_int_eq(put(1, "0123456789abcdef", 16), 1);
        (void)ring_publish(&p);
        memcpy(data, &lengths[i], sizeof lengths[i]);
        consumer_refuses();
        ring_close();
    }
}
END_TEST

START_TEST(tails_that_jump_are_refused)
{
    static const uint32_t jumps[] = {32, SIZE, 1u << 31, UINT32_MAX - 7, 4};
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        uint32_t tail = 0;
        ring_open();
        ck_assert_int_eq(put(1, "abc", 3), 1);
        (void)ring_publish(&p);
        atomic_store(&control->tail, jumps[i]);
        ck_assert_int_eq(ring_consumed(&p, &tail, &e), ERR_PROTOCOL);
        ck_assert_int_eq(put(1, "abc", 3), ERR_PROTOCOL);
        ck_assert(!ring_full_sleep(&p, SIZE / 2));
        ring_close();
    }
}
END_TEST

/* One that scribbles all over the shared memory while it is read. */
START_TEST(scribbling_harms_nobody)
{
    uint8_t out[SIZE];
    unsigned taken = 0;
    ring_open();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        unsigned seed = 3;
        for (;;) {
            unsigned at = (unsigned)rand_r(&seed) % ((SIZE + sizeof *control) / 4);
            ((volatile uint32_t *)control)[at] = (uint32_t)rand_r(&seed) % 64 * 4;
            atomic_store(&control->head, (unsigned)rand_r(&seed) % (2 * SIZE) & ~7u);
        }
    }
    for (int i = 0; i < 20000 || taken < 1000; i++) { /* until it runs */
        struct ring_consumer r;
        ring_consumer_init(&r, control, data, SIZE);
        r.head = r.tail = r.released = (uint32_t)(i % 64 * 8);
        uint32_t id = 0;
        uint32_t size = 0;
        while (ring_next(&r, &id, &size, NULL) == 1) {
            ck_assert_uint_le(size, ring_record_max(SIZE));
            ring_take(&r, size, out);
            (void)ring_release(&r);
            ck_assert_uint_le(r.head - r.tail, SIZE);
            taken++;
        }
    }
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ring_close();
}
END_TEST

/* ---- sleep --------------------------------------------------------------------------------- */

START_TEST(one_sleep_is_rung_for_once)
{
    ring_open();
    ck_assert_int_eq(put(1, "a", 1), 1);
    ck_assert(!ring_publish(&p)); /* it does not sleep */
    ck_assert(!ring_sleep(&c));   /* there is something */
    take_one();
    ck_assert(ring_sleep(&c));
    ck_assert(!ring_publish(&p)); /* nothing new */
    ck_assert_int_eq(put(1, "a", 1), 1);
    ck_assert(ring_publish(&p));
    ck_assert_int_eq(put(1, "a", 1), 1);
    ck_assert(!ring_publish(&p)); /* has rung */
    take_one();
    take_one();
    ck_assert(ring_sleep(&c)); /* again, without having been awake between */
    ck_assert_int_eq(put(1, "a", 1), 1);
    ck_assert(ring_publish(&p));
    ring_wake(&c);
    ck_assert_int_eq(put(1, "a", 1), 1);
    ck_assert(!ring_publish(&p));
    ring_close();
}
END_TEST

START_TEST(who_waits_for_room_is_rung_for)
{
    ring_open();
    ck_assert(!ring_full_sleep(&p, 8));
    while (put(1, "0123456789abcdef", 16) == 1) {
    }
    (void)ring_publish(&p);
    ck_assert(ring_full_sleep(&p, 16));
    ck_assert(!ring_release(&c));
    uint8_t out[SIZE];
    uint32_t id = 0;
    uint32_t size = 0;
    ck_assert_int_eq(ring_next(&c, &id, &size, &e), 1);
    ring_take(&c, size, out);
    ck_assert(ring_release(&c));
    take_one();
    ring_full_wake(&p);
    ck_assert_int_eq(put(1, "0123456789abcdef", 16), 1);
    ring_close();
}
END_TEST

/* ---- two threads --------------------------------------------------------------------------- */

#define RECORDS 100000u

struct bells {
    int record;
    int room;
};

static void wait_for(int fd)
{
    uint64_t count;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&poll_fd, 1, 60000), 1); /* a lost wake-up would end here */
    ck_assert_int_eq(read(fd, &count, sizeof count), sizeof count);
}

static void ring_bell(int fd)
{
    uint64_t one = 1;
    ck_assert_int_eq(write(fd, &one, sizeof one), sizeof one);
}

static void *produce(void *arg)
{
    const struct bells *b = arg;
    struct err failed = ERR_INIT;
    uint8_t bytes[96];
    unsigned seed = 11;
    for (uint32_t i = 0; i < RECORDS;) {
        size_t size = (size_t)rand_r(&seed) % sizeof bytes;
        memset(bytes, (int)(i & 0xff), size);
        int rc = ring_put(&p, i, bytes_of(bytes, size), (struct bytes){0}, &failed);
        ck_assert_int_ge(rc, 0);
        if (ring_publish(&p)) {
            ring_bell(b->record);
        }
        if (rc == 1) {
            i++;
        } else if (ring_full_sleep(&p, size)) {
            wait_for(b->room);
            ring_full_wake(&p);
        }
    }
    return NULL;
}

START_TEST(two_threads_lose_nothing)
{
    struct bells b = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};
    pthread_t thread;
    uint8_t out[SIZE];
    ring_open();
    ck_assert_int_eq(pthread_create(&thread, NULL, produce, &b), 0);
    for (uint32_t i = 0; i < RECORDS;) {
        uint32_t id = 0;
        uint32_t size = 0;
        int rc = ring_next(&c, &id, &size, &e);
        ck_assert_int_ge(rc, 0);
        if (rc == 1) {
            ck_assert_uint_eq(id, i++);
            ring_take(&c, size, out);
            ck_assert(size == 0 || (out[0] == (id & 0xff) && out[size - 1] == (id & 0xff)));
        }
        if ((rc == 0 || i % 3 == 0) && ring_release(&c)) {
            ring_bell(b.room);
        }
        if (rc == 0 && ring_sleep(&c)) {
            wait_for(b.record);
            ring_wake(&c);
        }
    }
    (void)ring_release(&c);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(b.record);
    (void)close(b.room);
    ring_close();
}
END_TEST

SUITE_MAIN("ring", a_record_comes_out_as_it_went_in,
           a_full_ring_takes_no_more_until_room_is_released, it_is_a_queue, positions_wrap,
           heads_that_jump_are_refused, a_head_that_runs_backwards_is_refused,
           lengths_beyond_what_was_published_are_refused, tails_that_jump_are_refused,
           scribbling_harms_nobody, one_sleep_is_rung_for_once, who_waits_for_room_is_rung_for,
           two_threads_lose_nothing)

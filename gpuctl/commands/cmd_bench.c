/* gpuctl bench: the cost of a round trip to the running daemon, and the speed of copies. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/input/spec.h"

#define AT_ONCE_MAX 64u
#define ROWS        13u
#define TRIPS       2000u
#define COPIED      ((uint64_t)64 << 20) /* bytes copied of each size, but COPIES_MAX times at most */
#define COPIES_MAX  200u

enum { OPT_DEVICE = 1, OPT_QUICK };

const struct option bench_option_list[] = {
    {"device", 0, true, OPT_DEVICE},
    {"quick", 0, false, OPT_QUICK},
    {0},
};

struct figures {
    struct sheet_cell what, at_once, size, p50, p99, per_second, bytes_per_second;
};

static const struct sheet_field fields[] = {
    SHEET_FIELD(struct figures, what, GPUD_COLUMN_TEXT, false),
    SHEET_FIELD(struct figures, at_once, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct figures, size, GPUD_COLUMN_BYTES, false),
    SHEET_FIELD(struct figures, p50, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct figures, p99, GPUD_COLUMN_NS, false),
    SHEET_FIELD(struct figures, per_second, GPUD_COLUMN_UINT, false),
    SHEET_FIELD(struct figures, bytes_per_second, GPUD_COLUMN_BYTES, false),
};

struct bench {
    gpud_client *client;
    uint64_t device; /* GPUD_ON(id); 0: the daemon chooses */
    bool quick;      /* a tenth of everything */
    uint64_t *times; /* owned; ns of each trip or copy */
    struct figures rows[ROWS];
    uint32_t row_count;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Adds a row of `count` times. at_once, bytes: 0 if they do not apply. */
static void add_row(struct bench *b, const char *what, uint64_t at_once, uint64_t bytes,
                    unsigned count, uint64_t all_ns)
{
    double seconds = (double)(all_ns > 0 ? all_ns : 1) / 1e9;
    qsort(b->times, count, sizeof *b->times, by_time);
    const char *no_bytes = bytes == 0 ? "-" : NULL;
    b->rows[b->row_count++] = (struct figures){
        .what = {.text = what},
        .at_once = {.value = at_once, .text = at_once == 0 ? "-" : NULL},
        .size = {.value = bytes, .text = no_bytes},
        .p50 = {.value = b->times[count / 2]},
        .p99 = {.value = b->times[count - 1 - count / 100]},
        .per_second = {.value = (uint64_t)(count / seconds)},
        .bytes_per_second = {.value = (uint64_t)((double)bytes * count / seconds),
                             .text = no_bytes},
    };
}

/* ---- trips --------------------------------------------------------------------------------- */

static int finish(gpud_job *job, struct ctl_err *e)
{
    int rc = gpud_wait(job, GPUD_FOREVER);
    gpud_job_free(job);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "a null job");
}

static int trips(struct bench *b, const gpud_program *p, unsigned at_once, unsigned count,
                 struct ctl_err *e)
{
    gpud_job *job[AT_ONCE_MAX] = {NULL};
    uint64_t begun[AT_ONCE_MAX];
    const gpud_submit_options o = {
        .size = sizeof o, .flags = GPUD_SUBMIT_HELD | GPUD_SUBMIT_BLOCK, .device = b->device};
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < count + at_once; i++) {
        unsigned slot = i % at_once;
        if (job[slot] != NULL) {
            rc = finish(job[slot], e);
            job[slot] = NULL;
            b->times[i - at_once] = now_ns() - begun[slot];
        }
        if (rc == 0 && i < count) {
            begun[slot] = now_ns();
            rc = gpud_submit(b->client, p, NULL, 0, &o, &job[slot]);
            rc = rc == 0 ? 0 : ctl_err_lib(e, rc, "a null job");
        }
    }
    for (unsigned i = 0; i < at_once; i++) {
        gpud_job_free(job[i]);
    }
    return rc;
}

static int measure_trips(struct bench *b, struct ctl_err *e)
{
    static const unsigned at_once[] = {1, 8, 64};
    gpud_program *p = NULL;
    unsigned count = b->quick ? TRIPS / 10 : TRIPS;
    int rc = gpud_program_create(b->client, "null", &p);
    rc = rc == 0 ? gpud_program_seal(p) : rc;
    if (rc != 0) {
        ctl_err_lib(e, rc, "a program without steps");
    }
    if (rc == 0) {
        rc = trips(b, p, 8, count / 10, e); /* warm up */
    }
    for (unsigned i = 0; rc == 0 && i < 3; i++) {
        uint64_t begin_ns = now_ns();
        rc = trips(b, p, at_once[i], count, e);
        if (rc == 0) {
            add_row(b, "null job", at_once[i], 0, count, now_ns() - begin_ns);
        }
    }
    gpud_program_free(p);
    return rc;
}

/* ---- copies -------------------------------------------------------------------------------- */

static int copies(struct bench *b, gpud_buffer buffer, bool in, uint8_t *data, uint64_t bytes,
                  struct ctl_err *e)
{
    uint64_t budget = b->quick ? COPIED / 10 : COPIED;
    unsigned count = budget / bytes >= COPIES_MAX ? COPIES_MAX : (unsigned)(budget / bytes);
    count = count > 0 ? count : 1;
    uint64_t begin_ns = now_ns();
    for (unsigned i = 0; i < count; i++) {
        uint64_t at_ns = now_ns();
        int rc = in ? gpud_write(b->client, buffer, GPUD_U8, 0, bytes, data, NULL)
                    : gpud_read(b->client, buffer, GPUD_U8, 0, bytes, data, NULL);
        if (rc != 0) {
            return ctl_err_lib(e, rc, in ? "a write" : "a read");
        }
        b->times[i] = now_ns() - at_ns;
    }
    add_row(b, in ? "write" : "read", 0, bytes, count, now_ns() - begin_ns);
    return 0;
}

static int there_and_back(struct bench *b, gpud_buffer buffer, uint8_t *from, uint8_t *to,
                          uint64_t bytes, struct ctl_err *e)
{
    int rc = copies(b, buffer, true, from, bytes, e);
    rc = rc == 0 ? copies(b, buffer, false, to, bytes, e) : rc;
    if (rc == 0 && memcmp(from, to, bytes) != 0) {
        rc = ctl_err_set(e, GPUD_ERR_INTERNAL, "a copy of %llu bytes came back with wrong bytes",
                         (unsigned long long)bytes);
    }
    return rc;
}

static int measure_size(struct bench *b, uint64_t bytes, struct ctl_err *e)
{
    gpud_buffer buffer = {0};
    gpud_shape shape = gpud_shape_1d(GPUD_U8, bytes);
    uint8_t *from = malloc(bytes);
    uint8_t *to = malloc(bytes);
    int rc =
        from == NULL || to == NULL ? ctl_err_set(e, GPUD_ERR_NOMEM, "no memory to copy from") : 0;
    if (rc == 0) {
        for (uint64_t i = 0; i < bytes; i++) {
            from[i] = (uint8_t)(i + (i >> 12));
        }
        memset(to, 0, bytes); /* a first touch costs more than a copy */
        rc = b->device > 0
                 ? gpud_buffer_create_on(b->client, b->device - 1, shape, 0, "bench", &buffer)
                 : gpud_buffer_create(b->client, shape, 0, "bench", &buffer);
        rc = rc == 0 ? there_and_back(b, buffer, from, to, bytes, e)
                     : ctl_err_lib(e, rc, "a buffer");
    }
    if (buffer.id != 0) {
        (void)gpud_buffer_free(b->client, buffer);
    }
    free(from);
    free(to);
    return rc;
}

/* ---- the command --------------------------------------------------------------------------- */

static int parse(struct ctl *ctl, struct options *options, struct bench *b, struct ctl_err *e)
{
    const char *value = NULL;
    int id;
    while ((id = ctl_option_only(ctl, options, bench_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        if (id == OPT_QUICK) {
            b->quick = true;
        } else {
            int rc = ctl_device(value, &b->device, e);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

int cmd_bench(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct bench b = {.client = NULL};
    int rc = parse(ctl, options, &b, e);
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc != 0) {
        return rc;
    }
    b.client = ctl->client;
    b.times = calloc(TRIPS, sizeof *b.times);
    if (b.times == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for the times");
    }
    rc = measure_trips(&b, e);
    for (uint64_t bytes = 4096; rc == 0 && bytes <= (b.quick ? 1u << 20 : 64u << 20); bytes *= 16) {
        rc = measure_size(&b, bytes, e);
    }
    if (rc == 0) {
        const struct sheet_rows rows = SHEET_ROWS("bench", fields, b.rows, b.row_count);
        rc = ctl_write_rows(ctl, &rows, e);
    }
    free(b.times);
    return rc;
}

#include "daemon/front/tenants/account_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/err.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/thread.h"

#define MAGIC   UINT64_C(0x6770756461636374) /* "gpudacct" */
#define VERSION 1u
#define STEP    64u /* accounts by which the file grows */
#define STACK   ((size_t)128 * 1024)

struct head {
    uint64_t magic;
    uint32_t version;
    uint32_t account_bytes;
    uint32_t count;
    uint32_t unused;
    uint64_t alive_ns; /* monotonic clock: when the front was last seen alive */
    struct hash sum;   /* of a copy: of all that follows it here, and the accounts; else zeros */
};

struct saving {
    char path[PATH_MAX];
    void *data; /* owned */
    size_t size;
    int error; /* errno; 0: it is saved */
};

struct account_file {
    char path[PATH_MAX];  /* in the runtime folder */
    char state[PATH_MAX]; /* of the copy; "": there are none */
    int fd;               /* -1: it is in memory only */
    struct head *head;    /* mapped, with room for ACCOUNTS_MAX accounts */
    unsigned room;        /* accounts that the file has room for */
    pthread_t thread;
    bool saving;        /* the thread has to be joined */
    _Atomic bool saved; /* the thread is done */
    struct saving *s;   /* owned; the thread's until `saved` */
    struct hash last;   /* of the last copy's accounts */
    bool failed;        /* the last copy was not written */
};

static size_t bytes_of_accounts(unsigned count)
{
    return sizeof(struct head) + (size_t)count * sizeof(struct account);
}

static struct account *accounts_of(struct head *h)
{
    return (struct account *)(h + 1);
}

static bool join_path(char out[PATH_MAX], const char *dir, const char *name)
{
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

/* ---- what a file says ------------------------------------------------------------------------ */

static bool head_good(const struct head *h, size_t size)
{
    return size >= sizeof *h && h->magic == MAGIC && h->version == VERSION &&
           h->account_bytes == sizeof(struct account) && h->count >= 1 &&
           h->count <= ACCOUNTS_MAX && bytes_of_accounts(h->count) <= size;
}

static bool names_good(struct head *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        const char *name = accounts_of(h)[i].name;
        if (memchr(name, '\0', sizeof accounts_of(h)[i].name) == NULL) {
            return false;
        }
    }
    return true;
}

static struct hash sum_of(struct head *h)
{
    const struct hash_part parts[] = {{&h->alive_ns, sizeof h->alive_ns},
                                      {accounts_of(h), h->count * sizeof(struct account)}};
    return hash_parts(parts, 2);
}

/* Do buffers count on, so that the time of the last beat matters? */
static bool holds(struct head *h)
{
    bool any = false;
    for (unsigned i = 0; !any && i < h->count; i++) {
        any = accounts_of(h)[i].held_bytes > 0;
    }
    return any;
}

static void set_aside(const char *path, const char *why)
{
    char bad[PATH_MAX + 8];
    (void)snprintf(bad, sizeof bad, "%s.bad", path);
    int rc = rename(path, bad);
    log_say(LOG_FILE_BAD, "accounts of tenants: %s: %s; %s%s", path, why,
            rc == 0 ? "it is kept as " : "it cannot be renamed: ", rc == 0 ? bad : strerror(errno));
}

/* Buffers of a front before are counted until it was last seen alive; the time of that clock means
 * nothing any more. */
static void settle_all(struct head *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        struct account *a = &accounts_of(h)[i];
        account_held(a, 0, h->alive_ns);
        a->held_ns = 0;
    }
    h->alive_ns = 0;
}

/* ---- the copy -------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Writes another file and renames it, so a reader sees either copy whole. */
static int save(const struct saving *s)
{
    char fresh[PATH_MAX + 8];
    (void)snprintf(fresh, sizeof fresh, "%s.new", s->path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno;
    }
    int error = write_all(fd, s->data, s->size);
    error = error == 0 && fsync(fd) != 0 ? errno : error;
    (void)close(fd);
    return error == 0 && rename(fresh, s->path) != 0 ? errno : error;
}

static void *saving_run(void *data)
{
    struct account_file *f = data;
    f->s->error = save(f->s);
    atomic_store(&f->saved, true);
    return NULL;
}

static void saving_free(struct saving *s)
{
    free(s->data);
    free(s);
}

/* Takes what the thread has done. wait: until it is done. false: it is at work. */
static bool saving_over(struct account_file *f, bool wait)
{
    if (f->saving && !wait && !atomic_load(&f->saved)) {
        return false;
    }
    if (f->saving) {
        (void)pthread_join(f->thread, NULL);
    }
    f->saving = false;
    if (f->s == NULL) {
        return true;
    }
    bool failed = f->s->error != 0;
    if (failed && !f->failed) {
        log_say(LOG_FILE_BAD,
                "accounts of tenants: %s: %s; a reboot now would lose what was counted since the "
                "last copy",
                f->state, strerror(f->s->error));
    }
    f->failed = failed;
    f->last = failed ? (struct hash){{0}} : f->last;
    saving_free(f->s);
    f->s = NULL;
    return true;
}

static struct saving *saving_of(const struct account_file *f)
{
    size_t size = bytes_of_accounts(f->head->count);
    struct saving *s = calloc(1, sizeof *s);
    void *data = malloc(size);
    if (s == NULL || data == NULL) {
        free(s);
        free(data);
        return NULL;
    }
    memcpy(data, f->head, size);
    memcpy(s->path, f->state, sizeof s->path);
    s->data = data;
    s->size = size;
    return s;
}

void account_file_save(struct account_file *f)
{
    if (f->state[0] == '\0' || !saving_over(f, false)) {
        return;
    }
    struct saving *s = saving_of(f);
    if (s == NULL) {
        return; /* the next time there may be memory */
    }
    struct head *copy = s->data;
    copy->alive_ns = holds(copy) ? copy->alive_ns : 0; /* else each beat would be a change */
    copy->sum = sum_of(copy);
    if (hash_equal(copy->sum, f->last)) {
        saving_free(s);
        return;
    }
    f->s = s;
    f->last = copy->sum;
    atomic_store(&f->saved, false);
    f->saving = thread_start(STACK, saving_run, f, &f->thread);
    if (!f->saving) {
        (void)saving_run(f);
    }
}

/* Fills `h` from a file of at most `max` bytes. Returns 0, ENOENT, or EINVAL for what is no such
 * file. */
static int read_copy(const char *path, struct head *h, size_t max)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? ENOENT : EINVAL;
    }
    bool fits =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size <= max;
    ssize_t n = fits ? read(fd, h, (size_t)st.st_size) : -1;
    (void)close(fd);
    bool good = n > 0 && head_good(h, (size_t)n) && names_good(h) && hash_equal(sum_of(h), h->sum);
    return good ? 0 : EINVAL;
}

/* ---- the mapping ----------------------------------------------------------------------------- */

/* Takes room in the file for so many accounts. false: errno says why not. */
static bool grow(struct account_file *f, unsigned count)
{
    count = count < ACCOUNTS_MAX ? count : ACCOUNTS_MAX;
    int error = f->fd >= 0 ? posix_fallocate(f->fd, 0, (off_t)bytes_of_accounts(count)) : 0;
    if (error != 0) {
        errno = error;
        return false;
    }
    f->room = count;
    return true;
}

static bool map(struct account_file *f)
{
    int flags = f->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *at = mmap(NULL, bytes_of_accounts(ACCOUNTS_MAX), PROT_READ | PROT_WRITE, flags, f->fd, 0);
    f->head = at != MAP_FAILED ? at : NULL;
    return f->head != NULL;
}

static void drop(struct account_file *f)
{
    if (f->head != NULL) {
        (void)munmap(f->head, bytes_of_accounts(ACCOUNTS_MAX));
    }
    if (f->fd >= 0) {
        (void)close(f->fd);
    }
    f->head = NULL;
    f->fd = -1;
}

/* Maps the file of a front before. false: there is none, or it is set aside. */
static bool take(struct account_file *f)
{
    struct stat st;
    f->fd = open(f->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0 && errno == ENOENT) {
        return false;
    }
    bool file = f->fd >= 0 && fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) &&
                (size_t)st.st_size >= bytes_of_accounts(1);
    bool good = file && map(f) && head_good(f->head, (size_t)st.st_size) && names_good(f->head) &&
                grow(f, f->head->count);
    if (!good) {
        drop(f);
        set_aside(f->path, "it is damaged, or of another version of gpud");
    }
    return good;
}

static void head_begin(struct head *h)
{
    memset(h, 0, bytes_of_accounts(1));
    h->magic = MAGIC;
    h->version = VERSION;
    h->account_bytes = sizeof(struct account);
    h->count = 1;
}

/* Fills a new mapping from the copy, if there is one. */
static void fill(struct account_file *f)
{
    struct head *copy = f->state[0] != '\0' ? malloc(bytes_of_accounts(ACCOUNTS_MAX)) : NULL;
    int error = copy != NULL ? read_copy(f->state, copy, bytes_of_accounts(ACCOUNTS_MAX)) : ENOENT;
    if (error == 0 && grow(f, copy->count)) {
        memcpy(f->head, copy, bytes_of_accounts(copy->count));
        f->head->sum = (struct hash){{0}};
    } else if (error == 0) {
        log_say(
            LOG_FILE_BAD,
            "accounts of tenants: those in %s are more than fit, so the file is not written again",
            f->state);
        f->state[0] = '\0';
    } else if (error == EINVAL) {
        set_aside(f->state, "it is damaged, or of another version of gpud");
    }
    free(copy);
}

/* Makes the file under another name, so that a front that is ended here leaves no empty one. */
static bool make(struct account_file *f)
{
    char fresh[PATH_MAX + 8];
    (void)snprintf(fresh, sizeof fresh, "%s.new", f->path);
    (void)unlink(fresh);
    f->fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = f->fd >= 0 && grow(f, 1) && map(f);
    if (good) {
        head_begin(f->head);
        fill(f);
        good = rename(fresh, f->path) == 0;
    }
    if (!good) {
        int error = errno;
        drop(f);
        (void)unlink(fresh);
        errno = error;
    }
    return good;
}

/* Without a file: the next front counts from the copy. */
static bool make_in_memory(struct account_file *f)
{
    log_say(LOG_FILE_BAD,
            "accounts of tenants: %s: %s; they are in memory only, and a crash loses what was "
            "counted since the last copy",
            f->path, strerror(errno));
    f->fd = -1;
    if (!map(f) || !grow(f, 1)) {
        return false;
    }
    head_begin(f->head);
    fill(f);
    return true;
}

int account_file_open(const char *runtime_dir, const char *state_dir,
                      struct account_file **ret_file)
{
    struct account_file *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return ERR_NOMEM;
    }
    f->fd = -1;
    if (!join_path(f->path, runtime_dir, "accounts") ||
        (state_dir != NULL && !join_path(f->state, state_dir, "accounts"))) {
        free(f);
        return ERR_NOMEM;
    }
    if (!take(f) && !make(f) && !make_in_memory(f)) {
        free(f);
        return ERR_NOMEM;
    }
    settle_all(f->head);
    *ret_file = f;
    return 0;
}

void account_file_close(struct account_file *f)
{
    if (f == NULL) {
        return;
    }
    (void)saving_over(f, true);
    account_file_save(f);
    (void)saving_over(f, true);
    drop(f);
    free(f);
}

struct account *account_file_at(const struct account_file *f, unsigned index)
{
    return index < f->head->count ? &accounts_of(f->head)[index] : NULL;
}

void account_file_remove(struct account_file *f, unsigned index)
{
    struct account *last = &accounts_of(f->head)[f->head->count - 1];
    accounts_of(f->head)[index] = *last;
    f->head->count--;
}

struct account *account_file_add(struct account_file *f)
{
    unsigned count = f->head->count;
    if (count == ACCOUNTS_MAX || (count == f->room && !grow(f, count + STEP))) {
        return NULL;
    }
    struct account *a = &accounts_of(f->head)[count];
    *a = (struct account){.since_ns = 0};
    f->head->count = count + 1;
    return a;
}

void account_file_alive(struct account_file *f, uint64_t now_ns)
{
    f->head->alive_ns = now_ns > f->head->alive_ns ? now_ns : f->head->alive_ns;
}

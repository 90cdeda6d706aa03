/*
 * A front writes its accounts to a disk now and then, but not again while nothing that they count
 * has changed: a host that is idle lets its disk sleep. Fronts without failed allocations only: a
 * thread writes the copy, and its memory would be counted at random.
 */
#include "tests/sim/front/rules/sim_copies.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/model/account.h"
#include "tests/sim/front/sim.h"

#define COPY_MOST 65536u

static struct {
    bool kept; /* the front keeps a copy */
    struct timespec written;
    size_t size; /* of the accounts in it; 0: none was seen since the front began */
    char accounts[COPY_MOST];
} last;

static bool lacks_memory(const struct sim *s)
{
    bool lacks = false;
    for (unsigned i = 0; i < s->course->count; i++) {
        enum course_kind kind = s->course->event[i].kind;
        lacks = lacks || kind == COURSE_NOMEM || kind == COURSE_CRASH;
    }
    return lacks;
}

static void path_of(const struct sim *s, char out[2 * SIM_FOLDER])
{
    (void)snprintf(out, 2 * SIM_FOLDER, "%s/state/accounts", s->dir);
}

bool accounts_copy_follow(struct sim *s, char *ret_folder, size_t size)
{
    char path[2 * SIM_FOLDER];
    struct stat st;
    path_of(s, path);
    last.kept = !lacks_memory(s) && s->p.special != WORLD_SEALS;
    last.size = 0;
    if (stat(path, &st) == 0) { /* the front before wrote it; this one may write the same */
        last.written = st.st_mtim;
    }
    (void)snprintf(ret_folder, size, "%s/state", s->dir);
    if (last.kept) {
        (void)mkdir(ret_folder, 0700);
    }
    return last.kept;
}

void accounts_copy_clear(const char *dir)
{
    char path[2 * SIM_FOLDER];
    (void)snprintf(path, sizeof path, "%s/state/accounts.new", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/state/accounts", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/state", dir);
    (void)rmdir(path);
}

/* Reads what follows the head, whose size is the rest. Returns the size; 0: there is no copy that
 * fits. */
static size_t read_accounts(FILE *in, char out[COPY_MOST])
{
    char head[sizeof(struct account)];
    struct stat st;
    if (fstat(fileno(in), &st) != 0 || st.st_size <= 0 || (size_t)st.st_size > COPY_MOST) {
        return 0;
    }
    size_t before = (size_t)st.st_size % sizeof(struct account);
    size_t size = (size_t)st.st_size - before;
    bool read = fread(head, 1, before, in) == before && fread(out, 1, size, in) == size;
    return read ? size : 0;
}

/* While buffers are held, the time matters until which they are counted. */
static bool holds(const char *accounts, size_t size)
{
    struct account a;
    bool any = false;
    for (size_t at = 0; at < size && !any; at += sizeof a) {
        memcpy(&a, accounts + at, sizeof a);
        any = a.held_bytes > 0;
    }
    return any;
}

void accounts_copy_check(struct sim *s)
{
    static char now[COPY_MOST];
    struct stat st;
    char path[2 * SIM_FOLDER];
    path_of(s, path);
    bool same =
        !last.kept || stat(path, &st) != 0 ||
        (st.st_mtim.tv_sec == last.written.tv_sec && st.st_mtim.tv_nsec == last.written.tv_nsec);
    FILE *in = same ? NULL : fopen(path, "re");
    if (in == NULL) {
        return;
    }
    size_t size = read_accounts(in, now);
    (void)fclose(in);
    if (size > 0 && size == last.size && memcmp(now, last.accounts, size) == 0 &&
        !holds(now, size)) {
        sim_fail(s, "copies: the accounts are written to the disk again, and nothing has changed");
    }
    last.written = st.st_mtim;
    last.size = size;
    memcpy(last.accounts, now, size);
}

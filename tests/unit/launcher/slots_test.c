/* Users and folders of workers: which worker gets which, and what it finds there. */
#include "daemon/launcher/slots.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

#define STRANGER "65531:65532"
#define GROUP    65532u

static char dir[SCRATCH_PATH];
static struct children children;
static struct identity common;
static struct slots slots;

static const char *at(const char *folder, const char *name)
{
    static char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* As root a pool of two users, whose folders root has made. */
static bool begin_pool(void)
{
    struct err e = ERR_INIT;
    if (geteuid() != 0) {
        return false;
    }
    scratch_make(dir);
    ck_assert_int_eq(chmod(dir, 0711), 0);
    for (unsigned i = 0; i < 2; i++) {
        const char *folder = at(dir, i == 0 ? "0" : "1");
        ck_assert_int_eq(mkdir(folder, 0700), 0);
        ck_assert_int_eq(chown(folder, 65532 + i, GROUP), 0);
    }
    ck_assert_int_eq(setenv("HOME", dir, 1), 0);
    children_init(&children);
    ck_assert_int_eq(identity_find(STRANGER, &common, &e), 0);
    ck_assert_int_eq(slots_open(&slots, &common, STRANGER, 2, &e), 0);
    return true;
}

/* All as this user. */
static void begin_own(void)
{
    struct err e = ERR_INIT;
    scratch_make(dir);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", dir, 1), 0);
    children_init(&children);
    common = (struct identity){.uid = 0};
    ck_assert_int_eq(slots_open(&slots, &common, NULL, 0, &e), 0);
}

/* A worker that runs in its slot. */
static struct child *run(const char *owner, struct slot *ret_slot)
{
    struct err e = ERR_INIT;
    static uint64_t id;
    ck_assert_int_eq(slots_take(&slots, &children, bytes_str(owner), ret_slot, &e), 0);
    struct child *child = children_add(&children, CHILD_WORKER, ++id);
    ck_assert_ptr_nonnull(child);
    child->pid = 1; /* of whom nothing is asked here */
    child->slot = ret_slot->number;
    child->identity = ret_slot->identity;
    return child;
}

static void ends(struct child *child)
{
    child->pid = 0;
    child_remove(child);
}

static bool there(const struct slot *slot, const char *name)
{
    struct stat st;
    return lstat(at(slot->cache, name), &st) == 0;
}

static void leave(const struct slot *slot, const char *name)
{
    scratch_write(at(slot->cache, name), "code", 4);
    ck_assert(there(slot, name));
}

START_TEST(each_has_a_user_and_a_folder)
{
    struct slot a;
    struct slot b;
    struct stat st;
    if (!begin_pool()) {
        return;
    }
    (void)run("a", &a);
    (void)run("b", &b);
    ck_assert_uint_eq(a.identity->uid, 65532);
    ck_assert_uint_eq(b.identity->uid, 65533);
    ck_assert_uint_eq(a.identity->gid, GROUP);
    ck_assert_str_ne(a.cache, b.cache);
    ck_assert_int_eq(stat(b.cache, &st), 0);
    ck_assert_uint_eq(st.st_uid, 65533);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    scratch_remove(dir);
}
END_TEST

START_TEST(no_two_have_the_same_user)
{
    struct slot slot;
    struct err e = ERR_INIT;
    if (!begin_pool()) {
        return;
    }
    (void)run("a", &slot);
    struct child *second = run("a", &slot); /* the same owner */
    ck_assert_int_eq(slots_take(&slots, &children, bytes_str("a"), &slot, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "--worker-users") != NULL, "%s", e.text);
    ends(second);
    ck_assert_int_eq(slots_take(&slots, &children, bytes_str("b"), &slot, &e), 0);
    ck_assert_uint_eq(slot.number, 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_owner_finds_its_own_again)
{
    struct slot first;
    struct slot slot;
    begin_own();
    ends(run("a", &first));
    leave(&first, "kernel.so");
    (void)run("b", &slot);
    ck_assert_uint_ne(slot.number, first.number);
    ends(run("a", &slot));
    ck_assert_uint_eq(slot.number, first.number);
    ck_assert(there(&slot, "kernel.so"));
    struct err e = ERR_INIT; /* and over a restart of the launcher */
    ck_assert_int_eq(close(slots.slot[0].lock_fd), 0);
    ck_assert_int_eq(close(slots.slot[1].lock_fd), 0);
    children_init(&children);
    ck_assert_int_eq(slots_open(&slots, &common, NULL, 0, &e), 0);
    (void)run("a", &slot);
    ck_assert_uint_eq(slot.number, 0);
    ck_assert(there(&slot, "kernel.so"));
    scratch_remove(dir);
}
END_TEST

/* What one left, another would run. */
START_TEST(another_owner_finds_nothing)
{
    struct slot a;
    struct slot b;
    struct slot c;
    if (!begin_pool()) {
        return;
    }
    ends(run("a", &a));
    leave(&a, "kernel.so");
    ck_assert_int_eq(mkdir(at(a.cache, "closed"), 0700), 0);
    leave(&a, "closed/kernel.so");
    ck_assert_int_eq(chown(at(a.cache, "closed"), a.identity->uid, GROUP), 0);
    ck_assert_int_eq(chmod(at(a.cache, "closed"), 0), 0);
    ends(run("b", &b));
    ends(run("c", &c));
    ck_assert_uint_eq(c.number, a.number);
    ck_assert_str_eq(c.cache, a.cache);
    ck_assert(!there(&c, "kernel.so"));
    ck_assert(!there(&c, "closed"));
    scratch_remove(dir);
}
END_TEST

START_TEST(another_launcher_takes_other_slots)
{
    static struct slots other;
    struct slot mine;
    struct slot theirs;
    struct err e = ERR_INIT;
    begin_own();
    (void)run("a", &mine);
    static struct children none;
    children_init(&none);
    ck_assert_int_eq(slots_open(&other, &common, NULL, 0, &e), 0);
    ck_assert_int_eq(slots_take(&other, &none, bytes_str("a"), &theirs, &e), 0);
    ck_assert_uint_ne(theirs.number, mine.number);
    ck_assert_str_ne(theirs.cache, mine.cache);
    scratch_remove(dir);
}
END_TEST

/* Folders in folders, deeper than a path can name. */
static void nest(const char *folder, unsigned depth)
{
    char name[251];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < depth; i++) {
        ck_assert_int_eq(mkdirat(fd, name, 0700), 0);
        int below = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_ge(below, 0);
        (void)close(fd);
        fd = below;
    }
    (void)close(fd);
}

START_TEST(a_deep_folder_is_emptied)
{
    struct slot a;
    struct slot b;
    begin_own();
    ends(run("a", &a));
    slots.prepare_ms = 60000; /* a busy host needs more than is usual */
    nest(a.cache, 300);
    leave(&a, "lifted-2");                     /* a name that is taken */
    for (unsigned i = 1; i < SLOTS_MAX; i++) { /* so that it is the one to take */
        slots.slot[i].taken = 1000;
    }
    ends(run("b", &b));
    ck_assert_str_eq(b.cache, a.cache);
    ck_assert_int_eq(rmdir(b.cache), 0); /* it is empty */
    scratch_remove(dir);
}
END_TEST

/* The launcher does not wait for the end of it, and no other worker gets what is left. */
START_TEST(a_full_folder_is_emptied_bit_by_bit)
{
    struct slot a;
    struct slot b;
    char name[32];
    begin_own();
    ends(run("a", &a));
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        int fd = open(at(a.cache, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        (void)close(fd);
    }
    for (unsigned i = 1; i < SLOTS_MAX; i++) {
        slots.slot[i].taken = 1000;
    }
    slots.prepare_ms = 1;
    ends(run("b", &b));
    ck_assert_uint_eq(b.number, a.number);
    ck_assert_str_eq(b.cache, "");
    slots.prepare_ms = 60000;
    ends(run("b", &b));
    ck_assert_str_eq(b.cache, a.cache);
    ck_assert_int_eq(rmdir(b.cache), 0);
    scratch_remove(dir);
}
END_TEST

/* The worker runs all the same. */
START_TEST(a_folder_of_somebody_else_is_not_used)
{
    struct slot slot;
    if (!begin_pool()) {
        return;
    }
    ck_assert_int_eq(chown(at(dir, "0"), 65535, GROUP), 0);
    (void)run("a", &slot);
    ck_assert_str_eq(slot.cache, "");
    ck_assert_uint_eq(slot.identity->uid, 65532);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_pool_needs_a_user_to_begin_with)
{
    struct err e = ERR_INIT;
    common = (struct identity){.uid = 0};
    ck_assert_int_eq(slots_open(&slots, &common, NULL, 2, &e), ERR_INVALID);
    ck_assert_int_eq(slots_open(&slots, &common, "gpud-no-such-user", 2, &e), ERR_NOT_FOUND);
    ck_assert_int_eq(slots_open(&slots, &common, STRANGER, SLOT_USERS_MAX + 1, &e), ERR_INVALID);
}
END_TEST

SUITE_MAIN("slots", each_has_a_user_and_a_folder, no_two_have_the_same_user,
           an_owner_finds_its_own_again, another_owner_finds_nothing, a_deep_folder_is_emptied,
           a_full_folder_is_emptied_bit_by_bit, another_launcher_takes_other_slots,
           a_folder_of_somebody_else_is_not_used, a_pool_needs_a_user_to_begin_with)

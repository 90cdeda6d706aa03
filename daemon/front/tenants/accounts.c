#include "daemon/front/tenants/accounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

/* The account of a name, for as long as it has one. */
struct place {
    struct account *account;   /* in the file */
    bool bound;                /* a tenant has it */
    struct place *prev, *next; /* in `idle`, unless bound */
    UT_hash_handle hh;         /* in `places`, by account->name */
};

struct accounts {
    struct account_file *file; /* owned */
    struct place *places;      /* owned */
    struct place *idle;        /* of forgotten tenants, the first one forgotten first */
    uint64_t beat_ns;          /* when the next beat is due */
    uint64_t save_ns;          /* when the next copy is due */
};

static struct place *find(const struct accounts *a, const char *name)
{
    struct place *p = NULL;
    HASH_FIND(hh, a->places, name, strlen(name), p);
    return p;
}

/* NULL: no memory. */
static struct place *place_add(struct accounts *a, struct account *account)
{
    struct place *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->account = account;
    HASH_ADD_KEYPTR(hh, a->places, account->name, strlen(account->name), p);
    if (!HASH_ENTERED(p->hh)) {
        free(p);
        return NULL;
    }
    DL_APPEND(a->idle, p);
    return p;
}

static void place_remove(struct accounts *a, struct place *p)
{
    HASH_DEL(a->places, p);
    DL_DELETE(a->idle, p);
    free(p);
}

static struct account *others(const struct accounts *a)
{
    return account_file_at(a->file, 0);
}

static void begin(struct account *account, const char *name)
{
    *account = (struct account){.since_ns = clock_wall_ns()};
    (void)snprintf(account->name, sizeof account->name, "%s", name);
}

/* A zeroed account; NULL: there is no room, and tenants have all accounts. */
static struct account *take_account(struct accounts *a)
{
    struct account *account = account_file_add(a->file);
    struct place *oldest = a->idle;
    if (account == NULL && oldest != NULL) {
        account = oldest->account;
        place_remove(a, oldest);
        account_add(others(a), account);
        *account = (struct account){.since_ns = 0};
    }
    return account;
}

/* Finds the accounts of the file. One without a name was never used. Two of one name, which a
 * front leaves that is ended in between, become one. false: no memory. */
static bool index_all(struct accounts *a)
{
    struct account *account;
    for (unsigned i = 1; (account = account_file_at(a->file, i)) != NULL;) {
        struct place *same = find(a, account->name);
        if (same != NULL) {
            account_add(same->account, account);
        }
        if (same != NULL || account->name[0] == '\0') {
            account_file_remove(a->file, i);
            continue;
        }
        if (place_add(a, account) == NULL) {
            return false;
        }
        i++;
    }
    return true;
}

int accounts_create(const char *runtime_dir, const char *state_dir, struct accounts **ret_accounts,
                    struct err *e)
{
    struct accounts *a = calloc(1, sizeof *a);
    if (a == NULL || account_file_open(runtime_dir, state_dir, &a->file) != 0) {
        free(a);
        return err_set(e, ERR_NOMEM, "no memory for accounts of tenants");
    }
    if (others(a)->name[0] == '\0') {
        begin(others(a), ACCOUNTS_OTHERS);
    }
    if (!index_all(a)) {
        accounts_destroy(a, 0);
        return err_set(e, ERR_NOMEM, "no memory for accounts of tenants");
    }
    *ret_accounts = a;
    return 0;
}

void accounts_destroy(struct accounts *a, uint64_t now_ns)
{
    struct place *p;
    struct place *next;
    if (a == NULL) {
        return;
    }
    HASH_ITER(hh, a->places, p, next)
    {
        HASH_DEL(a->places, p);
        free(p);
    }
    account_file_alive(a->file, now_ns);
    account_file_close(a->file);
    free(a);
}

void accounts_bind(struct accounts *a, struct tenant *t)
{
    struct place *p = a != NULL ? find(a, t->name) : NULL;
    struct account *account = a != NULL && p == NULL ? take_account(a) : NULL;
    t->own.since_ns = clock_wall_ns();
    if (account != NULL) {
        begin(account, t->name);
        p = place_add(a, account);
    }
    if (p != NULL && !p->bound) {
        p->bound = true;
        DL_DELETE(a->idle, p);
        t->account = p->account;
    }
}

void accounts_release(struct accounts *a, struct tenant *t, uint64_t now_ns)
{
    if (a == NULL) {
        return;
    }
    account_held(t->account, 0, now_ns);
    if (t->account == &t->own) {
        account_add(others(a), &t->own);
    } else {
        struct place *p = find(a, t->name);
        p->bound = false;
        DL_APPEND(a->idle, p);
    }
    t->own = (struct account){.since_ns = 0};
    t->account = &t->own;
}

uint64_t accounts_beat(struct accounts *a, uint64_t now_ns)
{
    if (now_ns >= a->beat_ns) {
        account_file_alive(a->file, now_ns);
        a->beat_ns = ns_add(now_ns, ACCOUNTS_BEAT_NS);
    }
    if (now_ns >= a->save_ns) {
        account_file_save(a->file);
        a->save_ns = ns_add(now_ns, ACCOUNTS_SAVE_NS);
    }
    return a->beat_ns < a->save_ns ? a->beat_ns : a->save_ns;
}

static void again(struct account *account, uint64_t now_ns)
{
    char name[sizeof account->name];
    uint64_t held = account->held_bytes;
    (void)snprintf(name, sizeof name, "%s", account->name);
    begin(account, name);
    account->held_ns = now_ns;
    account_held(account, held, now_ns);
}

void accounts_reset(struct accounts *a, uint64_t now_ns)
{
    again(others(a), now_ns);
    for (struct place *p = a->places; p != NULL; p = p->hh.next) {
        again(p->account, now_ns);
    }
}

const struct account *accounts_at(const struct accounts *a, unsigned index)
{
    return account_file_at(a->file, index);
}

unsigned accounts_index(const struct accounts *a, const struct account *account)
{
    return (unsigned)(account - account_file_at(a->file, 0));
}

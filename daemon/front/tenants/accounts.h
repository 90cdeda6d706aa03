/*
 * The accounts of all tenants, in a file that outlives the front.
 *
 * The file `accounts` in the runtime folder is mapped, and counters change in the mapping. So an
 * end of the front by any signal loses nothing, but for the job that is ending in that moment, and
 * for bytes x seconds since the last beat. A reboot empties the runtime folder; therefore a copy
 * goes to the state folder every ACCOUNTS_SAVE_NS and at the end, written by a thread, and the next
 * boot begins with it. Without a state folder the accounts end with the runtime folder. A damaged
 * file is renamed to `accounts.bad`, and counting begins anew, or from the copy.
 *
 * Accounts of forgotten tenants stay while there is room for ACCOUNTS_MAX. Then the
 * account that was forgotten first is added to ACCOUNTS_OTHERS, so sums remain exact.
 *
 * A change blocks on nothing if the runtime folder is in memory (/run). Thread: the loop's.
 */
#ifndef FRONT_TENANTS_ACCOUNTS_H
#define FRONT_TENANTS_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/tenants/account_file.h"

#define ACCOUNTS_OTHERS  "(others)"
#define ACCOUNTS_SAVE_NS (60 * NS_PER_S)
#define ACCOUNTS_BEAT_NS (10 * NS_PER_S)

struct accounts;

/* state_dir NULL: no copies. Files that cannot be used are logged, and the accounts are in memory
 * then. Blocks on small files. ERR_NOMEM. */
int accounts_create(const char *runtime_dir, const char *state_dir, struct accounts **ret_accounts,
                    struct err *e);
/* Saves a last copy, and waits for it. No tenant may be bound; NULL is accepted. */
void accounts_destroy(struct accounts *a, uint64_t now_ns);

/* Gives a new tenant the account of its name. Without room, or with accounts NULL, the tenant
 * counts in memory of its own. */
void accounts_bind(struct accounts *a, struct tenant *t);
/* The tenant is forgotten, or the front ends. Its account stays. */
void accounts_release(struct accounts *a, struct tenant *t, uint64_t now_ns);

/* Notes that the front lives, and saves a copy if it is time to. Returns when to call it again. */
uint64_t accounts_beat(struct accounts *a, uint64_t now_ns);
/* Begins all counters anew, except for what buffers hold now. */
void accounts_reset(struct accounts *a, uint64_t now_ns);

/* The account at this index, of a tenant or of one that is forgotten; NULL: no such index. */
const struct account *accounts_at(const struct accounts *a, unsigned index);
/* The index of an account of the file. It is the same for as long as the front lives. */
unsigned accounts_index(const struct accounts *a, const struct account *account);

#endif

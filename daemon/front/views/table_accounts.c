/* The table `accounts`: what tenants have used, forgotten ones too. */
#include <time.h>

#include "common/clock.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/views/table_view.h"

#define ACCOUNT_COLUMNS(COLUMN, WIDE)                                                              \
    COLUMN(tenant, TEXT, a->name)                                                                  \
    COLUMN(since, TEXT, since)                                                                     \
    COLUMN(device_time, NS, a->device_ns)                                                          \
    COLUMN(to_device, BYTES, a->to_device)                                                         \
    COLUMN(from_device, BYTES, a->from_device)                                                     \
    COLUMN(mib_seconds, UINT, account_mib_s(a, front_now(q->f)))                                   \
    COLUMN(peak, BYTES, a->peak_bytes)                                                             \
    COLUMN(joules, UINT, a->energy_uj / 1000000)                                                   \
    COLUMN(done, UINT, a->jobs[ACCOUNT_DONE])                                                      \
    COLUMN(failed, UINT, a->jobs[ACCOUNT_FAILED])                                                  \
    COLUMN(cancelled, UINT, a->jobs[ACCOUNT_CANCELLED])                                            \
    COLUMN(lost, UINT, a->jobs[ACCOUNT_LOST])                                                      \
    COLUMN(deadline, UINT, a->jobs[ACCOUNT_DEADLINE])                                              \
    COLUMN(refused, UINT, a->jobs[ACCOUNT_REFUSED])

static void accounts_begin(struct table_query *q)
{
    struct table *t = &q->table;
    TABLE_HEADER(ACCOUNT_COLUMNS);
    q->cursor = 0;
}

static void account_row(struct table_query *q, const struct account *a)
{
    struct table *t = &q->table;
    time_t seconds = (time_t)(a->since_ns / NS_PER_S);
    struct tm tm;
    char since[32] = "";
    if (gmtime_r(&seconds, &tm) != NULL) {
        (void)strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    TABLE_ROW(ACCOUNT_COLUMNS);
}

static bool accounts_next(struct table_query *q)
{
    const struct front *f = q->f;
    const struct account *a = f->accounts != NULL ? accounts_at(f->accounts, q->cursor) : NULL;
    if (a == NULL) {
        return false;
    }
    q->cursor++;
    /* only administrators see an account without a tenant */
    if (rights_sees(&f->rights, q->s, tenant_find(f->tenants, tenant_key_of(a->name)))) {
        turn_count(q->f, TABLE_ROW_UNITS);
        account_row(q, a);
    }
    return true;
}

const struct table_view view_accounts = {"accounts", accounts_begin, accounts_next, false};

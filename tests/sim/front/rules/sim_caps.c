/*
 * Caps on device time (device_share), by the simulation's own count. In the time since any moment a
 * tenant has no more of a device than its part, what it has in advance, and the jobs that were on
 * their way when that was used up. One that always has ready jobs has no less than its part while
 * no other tenant wants anything of the device.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/front/rules/sim_shares.h"

#define ADVANCE_NS (100e6) /* docs/operating.md: of a tenant that used little */
#define LOOP_NS    (2e6)   /* turns of the loop */
#define OFF        0.15    /* what jobs cost is known a little off, brief ones most */
#define KNOWN      30u     /* jobs that have ended: what they take is known */

/* Device time in ns. */
struct entry {
    bool counts;
    uint64_t since_ns;
    double had, others; /* until then; of others the last look's */
    double ahead_least; /* of its part, so far */
    bool waits;         /* alone, with ready jobs at each look */
    uint64_t waits_ns;
    double waits_had;
};

static struct entry entries[DEVICES_MAX][LOAD_CLIENTS];

void caps_anew(void)
{
    memset(entries, 0, sizeof entries);
}

/* What the client's flows have had of the device, and the longest of their jobs. */
static struct share_sum sum_of(const struct sim *s, unsigned device, unsigned client)
{
    struct share_sum sum = {0};
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        struct share_sum one = shares_sum(s, device, load_flow(s, client, class));
        sum.got += one.got;
        sum.ready += one.ready;
        sum.longest = one.longest > sum.longest ? one.longest : sum.longest;
    }
    return sum;
}

/* Jobs in flight: what they were expected to take, and took. */
static double flight_ns(const struct sim *s, unsigned device, const struct share_sum *sum)
{
    return sum->longest * (2 + OFF * shares_most(s, device)) + LOOP_NS;
}

static void check_most(struct sim *s, unsigned device, unsigned client, const struct share_sum *sum)
{
    struct entry *e = &entries[device][client];
    double part = s->load->client[client].cap / 100.0;
    double time = (double)(s->now_ns - e->since_ns);
    double ahead = (1 - OFF) * (sum->got - e->had) - part * time;
    double bound = (1 + OFF) * part * ADVANCE_NS + flight_ns(s, device, sum);
    e->ahead_least = ahead < e->ahead_least ? ahead : e->ahead_least;
    if (ahead - e->ahead_least > bound) {
        sim_fail(s,
                 "caps: client %u may have %.0f percent of device %u, and has %.3f ms more, at "
                 "most %.3f follow from what is in flight",
                 client, part * 100, device, (ahead - e->ahead_least) / 1e6, bound / 1e6);
    }
}

/* Nobody else has anything there. */
static void check_alone(struct sim *s, unsigned device, unsigned client,
                        const struct share_sum *sum, bool alone)
{
    struct entry *e = &entries[device][client];
    double part = s->load->client[client].cap / 100.0;
    bool waits = alone && sum->ready > 0;
    if (!waits || !e->waits) {
        e->waits_ns = s->now_ns;
        e->waits_had = sum->got;
    }
    e->waits = waits;
    double behind =
        part * (double)(s->now_ns - e->waits_ns) - (1 + OFF) * (sum->got - e->waits_had);
    double bound = 2 * flight_ns(s, device, sum);
    if (behind > bound) {
        sim_fail(s,
                 "caps: client %u alone wants device %u, may have %.0f percent, and is %.3f ms "
                 "behind that, at most %.3f follow from what was in flight",
                 client, device, part * 100, behind / 1e6, bound / 1e6);
    }
}

static void look(struct sim *s, unsigned device, unsigned client)
{
    struct entry *e = &entries[device][client];
    struct share_sum sum = sum_of(s, device, client);
    double others = 0;
    bool alone = true;
    for (unsigned i = 0; i < LOAD_CLIENTS; i++) {
        struct share_sum one = i != client ? sum_of(s, device, i) : (struct share_sum){0};
        others += one.got;
        alone = alone && one.ready == 0;
    }
    if (!e->counts) {
        *e = (struct entry){.counts = true, .since_ns = s->now_ns, .had = sum.got};
    }
    alone = alone && others == e->others;
    e->others = others;
    check_most(s, device, client, &sum);
    check_alone(s, device, client, &sum, alone);
}

/* Pauses between jobs are in no account, so they do not count for a cap. */
void caps_check(struct sim *s)
{
    bool paused = s->load->gap_ns > NS_PER_US;
    for (unsigned i = 0; !paused && i < s->p.devices && i < s->f->device_count; i++) {
        for (unsigned k = 0; k < LOAD_CLIENTS && k < s->p.clients; k++) {
            const struct load_client *t = &s->load->client[k];
            bool known = shares_known(s, i, LOAD_FLOWS + k) > KNOWN;
            if (t->cap > 0 && known && !t->wild && !s->load->outliers) {
                look(s, i, k);
            }
        }
    }
}

bool caps_explain(struct sim *s, const struct job *j, const char *why)
{
    static const char words[] = "(device_share = ";
    const char *at = strstr(why, words);
    const struct load_client *t = j->tenant != NULL ? load_client_of(s, j->tenant->name) : NULL;
    if (at != NULL && (t == NULL || strtoul(at + strlen(words), NULL, 10) != t->cap)) {
        sim_fail(s, "explain: \"%s\": its tenant may have as much as it wants", why);
    }
    return at != NULL;
}

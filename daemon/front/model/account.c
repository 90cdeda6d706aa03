#include "daemon/front/model/account.h"

#include "common/clock.h"

#define MIB (UINT64_C(1) << 20)

__extension__ typedef unsigned __int128 wide;

static wide wide_of(const uint64_t halves[2])
{
    return (wide)halves[1] << 64 | halves[0];
}

static void wide_set(uint64_t halves[2], wide value)
{
    halves[0] = (uint64_t)value;
    halves[1] = (uint64_t)(value >> 64);
}

/* What is held now, from `held_ns` on. A clock that is behind adds nothing. */
static wide held_until(const struct account *a, uint64_t now_ns)
{
    uint64_t ns = now_ns > a->held_ns ? now_ns - a->held_ns : 0;
    return wide_of(a->byte_ns) + (wide)a->held_bytes * ns;
}

void account_time(struct account *a, uint64_t ns)
{
    a->device_ns += ns;
}

void account_moved(struct account *a, uint64_t to_device, uint64_t from_device)
{
    a->to_device += to_device;
    a->from_device += from_device;
}

void account_job(struct account *a, enum account_result result)
{
    a->jobs[result]++;
}

void account_energy(struct account *a, uint64_t uj)
{
    a->energy_uj += uj;
}

void account_held(struct account *a, uint64_t bytes, uint64_t now_ns)
{
    wide_set(a->byte_ns, held_until(a, now_ns));
    a->held_ns = now_ns > a->held_ns ? now_ns : a->held_ns;
    a->held_bytes = bytes;
    a->peak_bytes = bytes > a->peak_bytes ? bytes : a->peak_bytes;
}

void account_add(struct account *a, const struct account *other)
{
    a->device_ns += other->device_ns;
    a->to_device += other->to_device;
    a->from_device += other->from_device;
    wide_set(a->byte_ns, wide_of(a->byte_ns) + wide_of(other->byte_ns));
    a->peak_bytes = other->peak_bytes > a->peak_bytes ? other->peak_bytes : a->peak_bytes;
    for (unsigned i = 0; i < ACCOUNT_RESULTS; i++) {
        a->jobs[i] += other->jobs[i];
    }
    a->energy_uj += other->energy_uj;
    a->since_ns = other->since_ns < a->since_ns ? other->since_ns : a->since_ns;
}

uint64_t account_mib_s(const struct account *a, uint64_t now_ns)
{
    wide mib_s = held_until(a, now_ns) / ((wide)MIB * NS_PER_S);
    return mib_s < UINT64_MAX ? (uint64_t)mib_s : UINT64_MAX;
}

/* Which allocations of the front fail, as a course says. */
#include <uthash.h>

#include "tests/sim/front/sim.h"

static struct {
    long left;        /* allocations of the front until one fails; 0: none does */
    unsigned more;    /* that fail behind it */
    bool tables;      /* those for tables may fail, too */
    size_t only;      /* only those of that size may; 0: any */
    unsigned outside; /* the code that runs is not the front's */
    bool failed;
    unsigned fails; /* allocations that did, in this process */
} memory = {.outside = 1};

/* The front reads files in other threads, whose allocations do not fail. */
static _Thread_local bool worlds_thread;

/* Tables have their memory while a front adopts: what is adopted without a place in a table is
 * forgotten, which the model does not follow. Such sizes are asked for tables only: the table, and
 * buckets by the power of two. */
static bool is_table(size_t size)
{
    size_t buckets = size / sizeof(UT_hash_bucket);
    bool power = buckets >= 32 && (buckets & (buckets - 1)) == 0;
    return size == sizeof(UT_hash_table) || (power && size % sizeof(UT_hash_bucket) == 0);
}

bool memory_here(void)
{
    return worlds_thread;
}

bool memory_fails(size_t size)
{
    if (!worlds_thread) {
        return false;
    }
    bool spared = (!memory.tables && is_table(size)) || (memory.only != 0 && size != memory.only);
    if (memory.outside > 0 || memory.left == 0 || spared || --memory.left > 0) {
        return false;
    }
    memory.failed = true;
    memory.fails++;
    memory.left = memory.more > 0 ? 1 : 0;
    memory.more -= memory.more > 0;
    return true;
}

void memory_reset(void)
{
    worlds_thread = true;
    memory.left = 0;
    memory.outside = 1;
    memory.failed = false;
}

void memory_fail(long left, bool tables)
{
    memory.left = left;
    memory.more = 0;
    memory.only = 0;
    memory.tables = tables;
}

void memory_only(size_t size)
{
    memory.only = size;
}

void memory_scarce(unsigned more)
{
    memory.more = more;
}

unsigned memory_fails_so_far(void)
{
    return memory.fails;
}

bool memory_failed(void)
{
    return memory.failed;
}

void memory_inside(void)
{
    memory.outside--;
}

void memory_outside(void)
{
    memory.outside++;
}

#include "tests/storm/witness.h"

/* $1: where gpud listens, $2: the log, $3: gpuctl. Each command ends by itself, so that a silent
 * daemon does not stop the storm. */
static const char script[] =
    "exec >>\"$2\" 2>&1\n"
    "ask() { echo \"storm: gpuctl $*\"; timeout 2 \"$ctl\" -u \"$url\" -o wide \"$@\"; }\n"
    "url=$1 ctl=$3\n"
    "ask status; ask devices; ask sessions; ask tenants; ask buffers\n"
    "for state in queued dispatched running; do\n"
    "    ask jobs --state $state --limit 10\n"
    "    timeout 2 \"$ctl\" -u \"$url\" -o csv jobs --state $state --limit 3 |\n"
    "        sed 1d | cut -d, -f1 | while read -r job; do ask job show \"$job\"; ask explain "
    "\"$job\"; done\n"
    "done\n";

void witness(const struct daemon *d)
{
    const char *const argv[] = {"sh", "-c", script, "witness", d->url, d->log, SYSTEM_BIN "/gpuctl",
                                NULL};
    (void)run_program(argv, "/dev/null", "/dev/null");
}

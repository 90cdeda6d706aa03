/*
 * Scripted faults: "write:3=fail;launch:5=hang;alloc:2+=nomem;open:1=fail".
 *
 * Each rule is operation:N=action, for the Nth call of that operation, or with N+ for the Nth and
 * all later ones; `*` means 1+. Operations: open alloc load write read copy fill launch mark.
 * Actions: fail (the call fails, or the marker behind the command), fault (ERR_KERNEL_FAULT, also
 * for the device), lost (ERR_DEVICE_LOST, also for the device), hang (never done), nomem
 * (ERR_DEVICE_MEMORY), crash (the process aborts). Thread: calls are counted under the device's
 * lock.
 */
#ifndef BACKEND_SIM_SCRIPT_H
#define BACKEND_SIM_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define SCRIPT_RULES_MAX 32u

enum sim_op {
    SIM_OPEN,
    SIM_ALLOC,
    SIM_LOAD,
    SIM_WRITE,
    SIM_READ,
    SIM_COPY,
    SIM_FILL,
    SIM_LAUNCH,
    SIM_MARK
};
#define SIM_OP_COUNT 9u

enum sim_action { SIM_OK, SIM_FAIL, SIM_FAULT, SIM_LOST, SIM_HANG, SIM_NOMEM, SIM_CRASH };

struct script_rule {
    enum sim_op op;
    uint64_t nth; /* counts from 1 */
    bool onwards;
    enum sim_action action;
};

struct script {
    struct script_rule rule[SCRIPT_RULES_MAX];
    unsigned rule_count;
    uint64_t calls[SIM_OP_COUNT];
};

/* ERR_INVALID names the malformed rule. */
int script_parse(const char *text, struct script *ret_script, struct err *e);
/* Counts one call, and returns the action of the first rule that matches it. */
enum sim_action script_next(struct script *s, enum sim_op op);
const char *sim_op_name(enum sim_op op); /* "write"; static */
/* Sets the error of an action, whose text says that it was scripted. Returns 0 for SIM_OK. */
int sim_action_error(enum sim_action action, enum sim_op op, struct err *e);

#endif

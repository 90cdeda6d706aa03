#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/sim/script.h"

static const char *const ops[SIM_OP_COUNT] = {"open", "alloc", "load",   "write", "read",
                                              "copy", "fill",  "launch", "mark"};
static const char *const actions[] = {"ok", "fail", "fault", "lost", "hang", "nomem", "crash"};

const char *sim_op_name(enum sim_op op)
{
    return ops[op];
}

static int name_index(const char *const *list, size_t count, const char *name, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == size && memcmp(list[i], name, size) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool nth_parse(const char *text, size_t size, struct script_rule *r)
{
    if (size == 1 && text[0] == '*') {
        r->nth = 1;
        r->onwards = true;
        return true;
    }
    char *end = NULL;
    if (size == 0 || !isdigit((unsigned char)text[0])) {
        return false;
    }
    r->nth = strtoull(text, &end, 10);
    r->onwards = *end == '+';
    return r->nth > 0 && end + r->onwards == text + size;
}

static bool rule_parse(const char *text, size_t size, struct script_rule *ret_rule)
{
    const char *colon = memchr(text, ':', size);
    const char *equal = colon ? memchr(colon, '=', size - (size_t)(colon - text)) : NULL;
    if (!equal) {
        return false;
    }
    const char *end = text + size;
    int op = name_index(ops, SIM_OP_COUNT, text, (size_t)(colon - text));
    int action = name_index(actions, sizeof actions / sizeof actions[0], equal + 1,
                            (size_t)(end - equal - 1));
    struct script_rule r = {0};
    if (op < 0 || action < 0 || !nth_parse(colon + 1, (size_t)(equal - colon - 1), &r)) {
        return false;
    }
    r.op = (enum sim_op)op;
    r.action = (enum sim_action)action;
    *ret_rule = r;
    return true;
}

int script_parse(const char *text, struct script *ret_script, struct err *e)
{
    struct script s = {0};
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ";");
        if (s.rule_count == SCRIPT_RULES_MAX) {
            return err_set(e, ERR_LIMIT, "a script of more than %u rules", SCRIPT_RULES_MAX);
        }
        if (!rule_parse(at, n, &s.rule[s.rule_count++])) {
            return err_set(e, ERR_INVALID, "script rule \"%.*s\" is not operation:N=action", (int)n,
                           at);
        }
        at += n + (at[n] == ';');
    }
    *ret_script = s;
    return 0;
}

enum sim_action script_next(struct script *s, enum sim_op op)
{
    uint64_t call = ++s->calls[op];
    for (unsigned i = 0; i < s->rule_count; i++) {
        const struct script_rule *r = &s->rule[i];
        if (r->op == op && (r->nth == call || (r->onwards && r->nth < call))) {
            return r->action;
        }
    }
    return SIM_OK;
}

int sim_action_error(enum sim_action action, enum sim_op op, struct err *e)
{
    switch (action) {
    case SIM_OK:
        return 0;
    case SIM_FAULT:
        return err_set(e, ERR_KERNEL_FAULT, "%s: scripted fault", ops[op]);
    case SIM_LOST:
        return err_set(e, ERR_DEVICE_LOST, "%s: scripted loss of the device", ops[op]);
    case SIM_NOMEM:
        return err_set(e, ERR_DEVICE_MEMORY, "%s: scripted lack of device memory", ops[op]);
    case SIM_CRASH:
        abort();
    default:
        return err_set(e, ERR_IO, "%s: scripted failure", ops[op]);
    }
}

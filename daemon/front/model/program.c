#include "daemon/front/model/program.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"

static struct proto_list move(struct proto_list list, uint8_t *to)
{
    if (list.raw.size > 0) {
        memcpy(to, list.raw.data, list.raw.size);
    }
    return (struct proto_list){.raw = bytes_of(to, list.raw.size), .count = list.count};
}

int program_create(struct proto_list params, struct proto_list temps, struct proto_list steps,
                   struct program **ret_program, struct err *e)
{
    size_t size = params.raw.size + temps.raw.size + steps.raw.size;
    struct program *p = calloc(1, sizeof *p);
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (p == NULL || bytes == NULL) {
        free(p);
        free(bytes);
        return err_set(e, ERR_NOMEM, "no memory for a program of %zu bytes", size);
    }
    p->bytes = bytes;
    p->size = size;
    p->references = 1;
    p->params = move(params, bytes);
    p->temps = move(temps, bytes + params.raw.size);
    p->steps = move(steps, bytes + params.raw.size + temps.raw.size);
    *ret_program = p;
    return 0;
}

void program_own(struct program *p, struct session *s)
{
    p->owner = s;
    DL_APPEND2(s->own_programs, p, owned_prev, owned_next);
    s->programs++;
    s->tenant->held[TENANT_PROGRAMS]++;
    session_keep(s, &s->program_bytes, p->size);
}

void program_disown(struct program *p)
{
    struct session *s = p->owner;
    DL_DELETE2(s->own_programs, p, owned_prev, owned_next);
    s->programs--;
    s->tenant->held[TENANT_PROGRAMS]--;
    session_let_go(s, &s->program_bytes, p->size);
    p->owner = NULL;
}

struct program *program_ref(struct program *p)
{
    p->references++;
    return p;
}

void program_unref(struct program *p)
{
    if (p == NULL || --p->references > 0) {
        return;
    }
    free(p->bytes);
    free(p);
}

#include "client/src/objects/objects.h"

#include <stdlib.h>

void object_set_unrestored(struct object *o, const struct err *e)
{
    free(o->unrestored);
    o->unrestored = e != NULL ? malloc(sizeof *e) : NULL;
    if (o->unrestored != NULL) {
        *o->unrestored = *e;
    }
}

static const char *kind_name(const struct object *o)
{
    static const char *const names[OBJECT_KINDS] = {[OBJECT_ARENA] = "shared memory",
                                                    [OBJECT_MODULE] = "module",
                                                    [OBJECT_KERNEL] = "kernel",
                                                    [OBJECT_PROGRAM] = "program"};
    return names[o->kind];
}

int object_refuse(const struct object *o, struct err *e)
{
    if (o->unrestored == NULL) {
        return err_set(e, ERR_STATE, "the daemon has no such %s since its restart", kind_name(o));
    }
    *e = *o->unrestored;
    return err_wrap(e, "the %s could not be restored after a restart of the daemon", kind_name(o));
}

int object_check(const struct object *o, struct err *e)
{
    return o->unrestored != NULL ? object_refuse(o, e) : 0;
}

void object_finish(struct object *o)
{
    free(o->unrestored);
    capbuf_finish(&o->recipe);
}

void object_link(struct gpud_client *c, struct object *o)
{
    o->prev = NULL;
    o->next = c->objects;
    if (c->objects != NULL) {
        c->objects->prev = o;
    }
    c->objects = o;
}

void object_unlink(struct gpud_client *c, struct object *o)
{
    if (o->prev != NULL) {
        o->prev->next = o->next;
    } else {
        c->objects = o->next;
    }
    if (o->next != NULL) {
        o->next->prev = o->prev;
    }
}

static void note_given_up(struct gpud_client *c, uint64_t seq)
{
    c->given_up = c->given_up == 0 || seq < c->given_up ? seq : c->given_up;
}

void object_give_up(struct gpud_client *c, struct object *o, uint64_t seq)
{
    o->freed_seq = seq;
    note_given_up(c, seq);
}

/* Runs after every answer, so it walks the list only if an object can be destroyed. */
void objects_reap(struct gpud_client *c)
{
    if (c->session.state == SESSION_RESTORE) {
        return; /* unanswered requests of restoring point to objects */
    }
    uint64_t lowest = requests_lowest(&c->requests);
    if (c->given_up == 0 || c->given_up >= lowest) {
        return;
    }
    struct object *o = c->objects;
    c->given_up = 0;
    while (o != NULL) {
        struct object *next = o->next;
        if (o->freed_seq != 0 && o->freed_seq < lowest) {
            object_unlink(c, o);
            o->destroy(o);
        } else if (o->freed_seq != 0) {
            note_given_up(c, o->freed_seq);
        }
        o = next;
    }
}

/*
 * The rights that a world gives: who is an administrator, which sections of the settings users
 * have, and which roles sections have. The front has to agree; sim_roles.c repeats none of its
 * code. In worlds with `roles` sections differ, and clients ask for what they may not have.
 */
#ifndef TEST_SIM_ROLES_H
#define TEST_SIM_ROLES_H

#include "tests/sim/front/sim.h"

enum sim_right { RIGHT_DRAIN = 1, RIGHT_RELOAD = 2, RIGHT_SEE = 4, RIGHT_CANCEL = 8 };

/* A client with a session, as its connection shows it. */
struct viewer {
    uint32_t uid;
    uint32_t socket; /* number of the tenant's own one; 0: the daemon's */
    bool local;
    char tenant[PROTO_NAME_MAX + 1];
};

void viewer_of_client(const struct sim *s, const struct sim_client *c, struct viewer *ret_viewer);
void viewer_of_session(const struct session *x, struct viewer *ret_viewer);
bool viewer_admin(const struct viewer *v);
/* Has one of these rights (enum sim_right). */
bool viewer_may(const struct sim *s, const struct viewer *v, unsigned rights);
/* Rows about that tenant; about jobs of it also their programs; content of it. "": of no tenant. */
bool viewer_sees(const struct sim *s, const struct viewer *v, const char *tenant);
bool viewer_reads(const struct sim *s, const struct viewer *v, const char *tenant);
bool viewer_content(const struct viewer *v, const char *tenant);

/* The roles that the section of the tenant has. */
unsigned roles_of(const struct sim *s, const char *tenant);
/* `look = all` is set. */
bool roles_look_all(const struct sim *s);
/* Sets user, group and tenant of a client that comes by the daemon's socket, or by a tenant's. */
void roles_user(const struct sim *s, struct sim_client *c);
void roles_tenant(const struct sim *s, const struct sim_client *c,
                  char ret_name[PROTO_NAME_MAX + 1]);
/* It is a kernel's, or no section has it where such users are refused. */
bool roles_barred(const struct sim *s, const struct sim_client *c);
/* Sections of users; the line of a section that begins. */
void roles_write(const struct sim *s, FILE *out,
                 void (*begin)(const struct sim *s, const char *tenant, FILE *out));
void roles_line(const struct sim *s, const char *tenant, FILE *out);
void roles_line_others(const struct sim *s, FILE *out);

/* Rules: what the front answers, and what it shows. */
struct compiler_request;
void rights_compile(struct sim *s, const struct compiler_request *r);
void rights_result(struct sim *s, const struct sim_job *j); /* it ended well */
void rights_answer(struct sim *s, const struct sim_parcel *p, struct bytes message);
/* What clients do in such a world: they ask for what may be refused. sim_meddle.c */
void meddle(struct sim *s, struct sim_client *c, struct chance *r);

#endif

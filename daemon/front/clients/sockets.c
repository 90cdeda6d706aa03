#include "daemon/front/clients/sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/front/settings/listener_url.h"

struct sockets {
    struct sockets *next;
    uint32_t number;
    struct tenant_socket is;
};

static void shm_path_of(const struct tenant_socket *is, char ret_path[SHM_PATH_MAX + 1])
{
    (void)snprintf(ret_path, SHM_PATH_MAX + 1, "%s%s", is->path, TENANT_SOCKET_SHM);
}

static void remove_both(struct listener *l, struct shm *shm, uint32_t number)
{
    listener_remove_tenant(l, number);
    shm_unlisten(shm, number);
}

/* The socket for descriptors comes first: a client that can connect finds it. */
static int open_both(struct listener *l, struct shm *shm, const struct tenant_socket *is,
                     uint32_t number, struct err *e)
{
    char path[SHM_PATH_MAX + 1];
    shm_path_of(is, path);
    int rc = tenant_socket_folder(is, e);
    rc = rc == 0 ? shm_listen(shm, number, path, is->mode, is->gid, e) : rc;
    rc = rc == 0 ? listener_add_tenant(l, is->path, number, e) : rc;
    rc = rc == 0 ? listen_permit(is->path, is->mode, is->gid, e) : rc;
    if (rc != 0) {
        remove_both(l, shm, number);
    }
    return rc;
}

static int permit_both(const struct tenant_socket *is, struct err *e)
{
    char path[SHM_PATH_MAX + 1];
    shm_path_of(is, path);
    int rc = listen_permit(path, is->mode, is->gid, e);
    return rc == 0 ? listen_permit(is->path, is->mode, is->gid, e) : rc;
}

static bool permits_alike(const struct tenant_socket *a, const struct tenant_socket *b)
{
    return a->mode == b->mode && a->gid == b->gid;
}

/* Closes a socket that its rule no longer has. An open one whose permissions cannot be changed is
 * closed as well: it would admit whom the settings do not. */
static int keep(struct sockets *s, struct listener *l, struct shm *shm,
                const struct tenant_rule *rule, bool *ret_kept, struct err *e)
{
    bool same = rule != NULL && strcmp(rule->socket.path, s->is.path) == 0;
    int rc = 0;
    if (same && !permits_alike(&rule->socket, &s->is)) {
        rc = permit_both(&rule->socket, e);
        s->is = rule->socket;
    }
    *ret_kept = same && rc == 0;
    if (!*ret_kept) {
        remove_both(l, shm, s->number);
        log_say(LOG_LISTENING, "%s is closed", s->is.path);
    }
    return rc;
}

static int close_some(struct sockets **all, struct listener *l, struct shm *shm,
                      const struct tenant_rules *rules, struct err *e)
{
    int first = 0;
    for (struct sockets **at = all; *at != NULL;) {
        struct sockets *s = *at;
        const struct tenant_rule *rule = tenant_rules_socket(rules, s->number);
        bool kept = false;
        int rc = keep(s, l, shm, rule, &kept, first == 0 ? e : NULL);
        first = first == 0 ? rc : first;
        if (kept) {
            at = &s->next;
        } else {
            *at = s->next;
            free(s);
        }
    }
    return first;
}

static bool has(const struct sockets *all, uint32_t number)
{
    while (all != NULL && all->number != number) {
        all = all->next;
    }
    return all != NULL;
}

static int add(struct sockets **all, struct listener *l, struct shm *shm,
               const struct tenant_rule *rule, struct err *e)
{
    uint32_t number = tenant_socket_number(rule->name);
    if (rule->socket.path[0] == '\0' || has(*all, number)) {
        return 0;
    }
    struct sockets *s = calloc(1, sizeof *s);
    int rc = s != NULL ? open_both(l, shm, &rule->socket, number, e)
                       : err_set(e, ERR_NOMEM, "no memory for a socket");
    if (rc != 0) {
        free(s);
        return err_wrap(e, "tenant %s", rule->name);
    }
    *s = (struct sockets){.next = *all, .number = number, .is = rule->socket};
    *all = s;
    log_about(LOG_LISTENING, (struct log_about){.tenant = rule->name},
              "listening on %s, for tenant %s", rule->socket.path, rule->name);
    return 0;
}

int sockets_apply(struct sockets **all, struct listener *l, struct shm *shm,
                  const struct tenant_rules *rules, struct err *e)
{
    int first = close_some(all, l, shm, rules, e);
    for (unsigned i = 0; i < rules->count; i++) {
        int rc = add(all, l, shm, &rules->rule[i], first == 0 ? e : NULL);
        first = first == 0 ? rc : first;
    }
    return first;
}

unsigned sockets_count(const struct sockets *all)
{
    unsigned count = 0;
    for (; all != NULL; all = all->next) {
        count++;
    }
    return count;
}

void sockets_destroy(struct sockets *all)
{
    while (all != NULL) {
        struct sockets *s = all;
        all = s->next;
        free(s);
    }
}

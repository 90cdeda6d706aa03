/* Snapshots of the devices' memory pools. */
#include <string.h>

#include "client/src/api/table.h"
#include "client/src/base/client.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"

#define DETAIL_MASK GPUD_POOL_DETAIL

static int take(struct gpud_client *c, const gpud_pool_options *given, gpud_table **ret_table,
                struct err *e)
{
    struct msg_pool_take msg = {0};
    if (ret_table == NULL) {
        return err_set(e, ERR_INVALID, "no pointer for the table");
    }
    gpud_pool_options o = {0};
    if (given != NULL && (given->size < sizeof given->size || given->size > 4096)) {
        return err_set(e, ERR_INVALID,
                       "gpud_pool_options.size is %zu: set it to the struct's sizeof", given->size);
    }
    if (given != NULL) { /* a program built with an older header passes a shorter struct */
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    }
    if ((o.flags & ~(uint64_t)DETAIL_MASK) != 0) {
        return err_set(e, ERR_INVALID, "unknown flags %#llx", (unsigned long long)o.flags);
    }
    msg.device = o.device;
    msg.detail = (o.flags & GPUD_POOL_DETAIL) != 0;
    msg.timeout_ns = o.timeout_ns;
    return table_call(c, &schema_msg_pool_take, &msg, ret_table, e);
}

int gpud_pool_take(gpud_client *client, const gpud_pool_options *options, gpud_table **ret_table)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = take(client, options, ret_table, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_pool_read(gpud_client *client, uint64_t picture, uint64_t device, int part, uint64_t first,
                   uint64_t count, gpud_table **ret_table)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    if (ret_table == NULL || part < GPUD_POOL_METERS || part > GPUD_POOL_EVENTS) {
        rc = err_set(&e, ERR_INVALID, "unknown part %d of a snapshot, or no pointer for the table",
                     part);
    } else {
        struct msg_pool_read msg = {.picture = picture,
                                    .part = (uint64_t)part,
                                    .device = device,
                                    .first = first,
                                    .count = count};
        rc = table_call(client, &schema_msg_pool_read, &msg, ret_table, &e);
    }
    client_leave(client);
    return error_report(rc, &e);
}

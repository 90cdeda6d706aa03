/* Tables that the daemon makes for operators. Thread: under the client's lock. Blocks. */
#ifndef CLIENT_API_TABLE_H
#define CLIENT_API_TABLE_H

#include "client/src/base/client.h"

/* Sends a request whose answer is TABLE, and decodes the table, which the caller frees. */
int table_call(struct gpud_client *c, const struct schema *request, void *msg,
               gpud_table **ret_table, struct err *e);

#endif

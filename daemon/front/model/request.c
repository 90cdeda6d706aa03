#include "daemon/front/model/request.h"

#include <stdlib.h>

#include "proto/sp.h"

void request_destroy(struct request *r)
{
    if (r != NULL) {
        message_unref(r->body);
        free(r);
    }
}

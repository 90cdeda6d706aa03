/* A copy between buffers on different devices: each has a worker of its own. It goes through memory
 * that both share, one piece read while the one before is written; where there is none (tcp, or
 * little to copy) through this process. Thread: any, without the client's lock. Blocks. */
#ifndef CLIENT_API_COPY_H
#define CLIENT_API_COPY_H

#include <gpud/gpud.h>

/* Does the copy if the buffers are on different devices; false: they are not, nothing was done.
 * *ret_code: as gpud_copy returns it, told to gpud_last_error. */
bool copy_between_devices(gpud_client *client, const gpud_arg *to, const gpud_arg *from,
                          int *ret_code);

#endif

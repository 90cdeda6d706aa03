/* A copy between buffers on different devices, each with a worker of its own. It goes through
 * memory that both workers map: one piece is read while the piece before is written. Small copies,
 * and copies over tcp, go through this process. Thread: any, without the client's lock. Blocks. */
#ifndef CLIENT_API_COPY_H
#define CLIENT_API_COPY_H

#include <gpud/gpud.h>

/* Does the copy if the buffers are on different devices and both sides have the same type and
 * count; false: otherwise, and nothing was done. *ret_code: gpud_copy's result; a failure is also
 * the thread's gpud_last_error. */
bool copy_between_devices(gpud_client *client, const gpud_arg *to, const gpud_arg *from,
                          int *ret_code);

#endif

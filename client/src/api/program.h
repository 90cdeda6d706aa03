/* Programs: built by one thread, then sealed and shared. Thread: under the client's lock. */
#ifndef CLIENT_API_PROGRAM_H
#define CLIENT_API_PROGRAM_H

#include "client/src/objects/program.h"

/* The client closes: programs remain for their owners. */
void programs_finish(struct gpud_client *c);

#endif

/* The other end of a launcher_link, played by the test. */
#ifndef TESTS_FRONT_FAKE_LAUNCHER_H
#define TESTS_FRONT_FAKE_LAUNCHER_H

#include "common/hash.h"
#include "common/seqpacket.h"
#include "daemon/front/workers/launcher_link.h"
#include "proto/codec.h"

/* Listens in dir, lets launcher_link_open(dir) meet it, says hello as `build` ("": hangs up without
 * a word) and gives what launcher_link_open gave. *ret_far is the launcher's end, -1 if none. */
int fake_launcher_open(uv_loop_t *loop, const char *dir, const char *build,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, int *ret_far, struct err *e);
/* One that hangs up so often before. */
int fake_launcher_busy(uv_loop_t *loop, const char *dir, const char *build, unsigned hangups,
                       const struct launcher_callbacks *callbacks, void *data,
                       struct launcher_link **ret_link, int *ret_far, struct err *e);
#define FAKE_BUILD "test-build"
/* What those hellos tell of gpud-compile; "" at first. */
extern char fake_compiler_hash[HASH_TEXT_BYTES];

void fake_send(int far_end, const struct schema *schema, const void *msg,
               const struct frame_fds *fds);
/* Receives a frame of that kind; views lie in memory that the next call overwrites. */
void fake_recv(int far_end, const struct schema *schema, void *ret_msg, struct frame_fds *ret_fds);
bool fake_has_frame(int far_end);

#endif

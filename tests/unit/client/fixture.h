/* A client of a fake daemon, for each test a new one. */
#ifndef TESTS_CLIENT_FIXTURE_H
#define TESTS_CLIENT_FIXTURE_H

#include <check.h>

#include "client/include/gpud/gpud.h"
#include "tests/unit/client/fake.h"

#define OK(call)         ck_assert_msg((call) == 0, "%s", gpud_last_error()->text)
#define FAILS(call, err) ck_assert_str_eq(gpud_err_name(call), gpud_err_name(err))

#define SECOND UINT64_C(1000000000)

extern struct fake *fake;
extern gpud_client *client;

void start(void);
void stop(void); /* closes the client if it is not NULL */

gpud_kernel find(void); /* adds one to each byte that it may write */
gpud_buffer make(uint64_t count);
/* Starts a launch on four bytes. */
gpud_job *launch(gpud_kernel k, uint32_t *data, uint32_t flags);

int run_tests(Suite *suite); /* for main */

#endif

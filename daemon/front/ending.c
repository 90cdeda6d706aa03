#include "daemon/front/ending.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* For the signal handler, which gets no data. */
static volatile sig_atomic_t status;
static const char *volatile unfinished = "";

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text)); /* a failure has no remedy */
}

/* The signal handler: only async-signal-safe calls. */
static void end(int number)
{
    (void)number;
    say("gpud: ");
    say(unfinished);
    say(" did not finish in time; gpud ends without it\n");
    _exit(status);
}

void ending_within(const struct front *f, unsigned seconds, const char *what)
{
    (void)alarm(0);
    status = f->exit_code;
    unfinished = what;
    (void)signal(SIGALRM, end);
    (void)alarm(seconds);
}

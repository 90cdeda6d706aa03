#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

#define SKIPPED 77

const char contract_backend[] = CONTRACT_BACKEND;
const char contract_options[] = CONTRACT_OPTIONS;

/* In a process of its own: drivers do not survive the forks that the tests run in. */
static bool device_present(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        const struct backend *b = backend_find(contract_backend);
        struct err e = ERR_INIT;
        unsigned count = 0;
        int rc = b ? b->enumerate(contract_options, &count, &e) : ERR_UNSUPPORTED;
        if (rc != 0) {
            fprintf(stderr, "%s: skipped: %s\n", contract_backend, b ? e.text : "not built in");
        }
        _exit(rc == 0 ? 0 : 1);
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    if (!device_present()) {
        return SKIPPED;
    }
    Suite *suite = suite_create(contract_backend);
    contract_device(suite);
    contract_memory(suite);
    contract_pages(suite);
    contract_stream(suite);
    contract_module(suite);
    contract_launch(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

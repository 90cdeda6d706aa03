#include "bench/common/scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/common/echo.h"

void scratch_folder(char *name)
{
    if (mkdtemp(name) == NULL) {
        bench_die("%s: %s", name, strerror(errno));
    }
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *walk)
{
    (void)s;
    (void)type;
    (void)walk;
    return remove(path);
}

void scratch_remove(const char *folder)
{
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void scratch_url(char *url, size_t size, const char *scheme)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&in, sizeof in) != 0 ||
        getsockname(fd, (struct sockaddr *)&in, &length) != 0) {
        bench_die("a port of the loopback: %s", strerror(errno));
    }
    (void)close(fd);
    (void)snprintf(url, size, "%s://127.0.0.1:%u", scheme, ntohs(in.sin_port));
}

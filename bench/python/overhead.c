/* What overhead.py compares with: `axpy` called from C, by gpud_call, with the same arrays.
 *   overhead URL ELEMENTS CALLS SHARED   prints the nanoseconds of each call
 */
#include <gpud/gpud.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(int code)
{
    if (code < 0) {
        (void)fprintf(stderr, "%s\n", gpud_last_error()->text);
        exit(1);
    }
}

static unsigned long long now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000ull + (unsigned long long)t.tv_nsec;
}

int main(int argc, char **argv)
{
    gpud_client *c;
    gpud_kernel axpy;
    void *x, *y;
    if (argc != 5) {
        return 2;
    }
    size_t n = (size_t)atol(argv[2]), bytes = n * sizeof(float);
    must(gpud_open(argv[1], NULL, &c));
    must(gpud_kernel_find(c, "axpy", &axpy));
    if (argv[4][0] == '1') {
        must(gpud_host_alloc(c, bytes, &x));
        must(gpud_host_alloc(c, bytes, &y));
    } else {
        x = malloc(bytes);
        y = malloc(bytes);
        if (x == NULL || y == NULL) {
            return 1;
        }
    }
    memset(x, 0, bytes);
    memset(y, 0, bytes);
    gpud_arg args[] = {gpud_f32(0), gpud_host_in(x, n, GPUD_F32), gpud_host_inout(y, n, GPUD_F32)};
    for (int i = 0, calls = atoi(argv[3]); i < calls; i++) {
        unsigned long long begin = now_ns();
        must(gpud_call(c, axpy, args, 3, NULL));
        (void)printf("%llu\n", now_ns() - begin);
    }
    gpud_close(c);
    return 0;
}

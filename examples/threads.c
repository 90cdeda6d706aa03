/* Many threads share one client for tiny reductions, without locks of their own. */
#include <pthread.h>

#include "example.h"

#define THREADS 8
#define CALLS   100
#define N       1000

static gpud_client *client;
static gpud_kernel sum;

static void *work(void *arg)
{
    float x[N];
    float total = 0;
    float first = *(const float *)arg;
    for (int i = 0; i < N; i++) {
        x[i] = first;
    }
    for (int i = 0; i < CALLS; i++) {
        gpud_arg args[] = {gpud_host_in(x, N, GPUD_F32), gpud_host_out(&total, 1, GPUD_F32)};
        must(gpud_call(client, sum, args, 2, NULL));
        if (total != first * N) {
            (void)fprintf(stderr, "%g instead of %g\n", (double)total, (double)first * N);
            exit(1);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    float first[THREADS];
    must(gpud_open(NULL, NULL, &client));
    must(gpud_kernel_find(client, "reduce_sum", &sum));
    for (int i = 0; i < THREADS; i++) {
        first[i] = (float)i;
        if (pthread_create(&thread[i], NULL, work, &first[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    (void)printf("%d sums\n", THREADS * CALLS);
    gpud_close(client);
    return 0;
}

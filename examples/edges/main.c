/*
 * gpud-demo [-u URL] [-d DEVICE] PHOTO PICTURE: finds the edges of a photograph on a device, writes
 * them as a PNG file, and compares them with the CPU's. `gpuctl demo` runs this program.
 *
 * Standard output: the size of the photograph, the job, a table separated by tabs. The exit status
 * is 0 if both results agree within the bound of rounding errors.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "edges/edges.h"
#include "edges/fail.h"
#include "edges/reference.h"

#define TOKEN_MAX  256u                 /* bytes, as the library allows */
#define CONNECT_NS UINT64_C(2000000000) /* longer than a daemon takes to start again */

struct choice {
    const char *url; /* NULL: $GPUD_URL, or the library's default */
    uint64_t device; /* GPUD_ON(id); 0: the daemon chooses */
    const char *photo;
    const char *picture;
};

static struct choice parse(int argc, char **argv)
{
    struct choice choice = {0};
    int letter;
    while ((letter = getopt(argc, argv, "u:d:")) != -1) {
        if (letter == 'u') {
            choice.url = optarg;
        } else if (letter == 'd') {
            choice.device = GPUD_ON(strtoull(optarg, NULL, 10));
        } else {
            optind = argc;
        }
    }
    if (argc - optind != 2) {
        fail(GPUD_ERR_INVALID, "usage", "gpud-demo [-u URL] [-d DEVICE] PHOTO PICTURE");
    }
    choice.photo = argv[optind];
    choice.picture = argv[optind + 1];
    return choice;
}

/* Connects, with the token from the file $GPUD_TOKEN_FILE if that is set. */
static gpud_client *connect_to(const char *url)
{
    char token[TOKEN_MAX + 1];
    gpud_options o = {.size = sizeof o, .name = "demo", .connect_timeout_ns = CONNECT_NS};
    const char *path = getenv("GPUD_TOKEN_FILE");
    if (path != NULL && path[0] != '\0') {
        FILE *file = fopen(path, "rb");
        if (file == NULL) {
            fail(GPUD_ERR_NOT_FOUND, "GPUD_TOKEN_FILE", path);
        }
        o.token = token;
        o.token_size = fread(token, 1, sizeof token, file);
        (void)fclose(file);
        o.token_size -= o.token_size > 0 && token[o.token_size - 1] == '\n' ? 1 : 0;
    }
    gpud_client *client;
    need(gpud_open(url, &o, &client), "connecting");
    return client;
}

struct comparison {
    double error; /* the largest difference */
    double bound; /* the largest difference that rounding can cause */
};

static const char *verdict(struct comparison c)
{
    return c.error <= c.bound ? "ok" : "WRONG"; /* NaN is wrong, too */
}

/* Compares the edges, 0 … 1, and the picture's bytes with the CPU's. */
static void compare(const struct image *photo, const struct edges *found,
                    struct comparison *ret_edges, struct comparison *ret_picture)
{
    double most = 0;
    double *expected = reference_edges(photo, (double)EDGES_SIGMA, &most);
    if (expected == NULL) {
        fail(GPUD_ERR_NOMEM, "reference", gpud_strerror(GPUD_ERR_NOMEM));
    }
    double gain = 255 * (double)EDGES_GAIN;
    struct comparison edges = {.bound = reference_bound((double)EDGES_SIGMA, most)};
    /* rounding to bytes adds half a step to the error of the value */
    struct comparison picture = {.bound = 0.5 + gain * (edges.bound + 4 * 0x1p-24)};
    size_t count = (size_t)photo->width * photo->height;
    for (size_t i = 0; i < count; i++) {
        double strength = (double)found->strength[i];
        double white = fmin(255, gain * expected[i]);
        edges.error =
            isfinite(strength) ? fmax(edges.error, fabs(strength - expected[i])) : INFINITY;
        picture.error = fmax(picture.error, fabs(found->picture.pixels[i] - white));
    }
    free(expected);
    *ret_edges = edges;
    *ret_picture = picture;
}

static void print_comparison(const char *what, struct comparison c)
{
    (void)printf("%s\t\t%.3g\t%.3g\t%s\n", what, c.error, c.bound, verdict(c));
}

int main(int argc, char **argv)
{
    fail_init(argv[0]);
    struct choice choice = parse(argc, argv);
    struct image photo;
    struct edges edges;
    const char *why = image_load(choice.photo, &photo);
    if (why != NULL) {
        fail(GPUD_ERR_INVALID, choice.photo, why);
    }
    gpud_client *client = connect_to(choice.url);
    edges_find(client, &photo, choice.device, &edges);
    gpud_close(client);
    why = image_save(choice.picture, &edges.picture);
    if (why != NULL) {
        fail(GPUD_ERR_IO, "writing the picture", why);
    }

    struct comparison strength, picture;
    compare(&photo, &edges, &strength, &picture);
    (void)printf("photograph: %u x %u pixels\n", photo.width, photo.height);
    (void)printf("job %" PRIu64 " on device %" PRIu64 ": %" PRIu64 " ns\n", edges.job,
                 edges.times.device, edges.times.executed_ns);
    (void)printf("stage\ttime\tmax_error\tbound\tverdict\n");
    for (int s = 0; s < EDGES_STAGES; s++) {
        (void)printf("%s\t%" PRIu64 "\t\t\t\n", edges.stage[s].kernel, edges.stage[s].ns);
    }
    print_comparison("edges against CPU", strength);
    print_comparison("picture against CPU", picture);
    bool good = strength.error <= strength.bound && picture.error <= picture.bound;
    edges_free(&edges);
    image_free(&photo);
    return good ? 0 : -GPUD_ERR_INTERNAL;
}

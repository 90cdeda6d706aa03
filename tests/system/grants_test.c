/* Buffers that one tenant grants another: three tenants by sockets of their own, all of one user.
 * In odd runs they may load kernels, so each has workers of its own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define PATHS 160
#define WORDS 65536u

static struct daemon d;
static char settings[PATHS];
static char urls[3][PATHS];
static gpud_client *a, *b, *c;

static void settings_write(bool apart)
{
    char text[1024];
    size_t used = 0;
    for (unsigned i = 0; i < 3; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "[tenant %c]\nlisten = %s\nload_kernels = %s\nbuffers_max = 3\n",
                                 (char)('a' + i), urls[i], apart ? "yes" : "no");
    }
    file_write(settings, text, used);
}

static void begin(const char *backend, bool apart)
{
    daemon_prepare(&d, "--backend", backend, "--backend-options",
                   strcmp(backend, "sim") == 0 ? "speed=0" : "", "--config", settings, NULL);
    (void)snprintf(settings, sizeof settings, "%s/grants.conf", d.dir);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(urls[i], sizeof urls[i], "ipc://%s/%c/gpud.sock", d.dir, (char)('a' + i));
    }
    settings_write(apart);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    a = client_open(urls[0]);
    b = client_open(urls[1]);
    c = client_open(urls[2]);
}

static void end(void)
{
    gpud_close(a);
    gpud_close(b);
    gpud_close(c);
    daemon_end(&d, NULL);
}

static gpud_buffer make(gpud_client *of, uint32_t seed)
{
    static uint32_t words[WORDS];
    gpud_buffer x = {0};
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = seed + i;
    }
    ck_gpud_ok(gpud_buffer_create(of, gpud_shape_1d(GPUD_U32, WORDS), 0, "weights", &x));
    ck_gpud_ok(gpud_write(of, x, GPUD_U32, 0, GPUD_REST, words, NULL));
    return x;
}

static gpud_buffer make_sealed(gpud_client *of, uint32_t seed)
{
    gpud_buffer x = make(of, seed);
    ck_gpud_ok(gpud_buffer_seal(of, x));
    return x;
}

static void ck_holds(gpud_client *of, gpud_buffer x, uint32_t seed)
{
    static uint32_t words[WORDS];
    memset(words, 0xa5, sizeof words);
    ck_gpud_ok(gpud_read(of, x, GPUD_U32, 0, GPUD_REST, words, NULL));
    for (uint32_t i = 0; i < WORDS; i++) {
        ck_assert_msg(words[i] == seed + i, "word %u: %u", i, words[i]);
    }
}

/* It may be read only. */
static void ck_sealed(gpud_client *of, gpud_buffer x)
{
    uint32_t word = 7;
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_info(of, x, &desc));
    ck_assert_uint_eq(desc.state, GPUD_BUFFER_SEALED);
    ck_assert_str_eq(desc.label, "weights");
    ck_gpud_err(gpud_write(of, x, GPUD_U32, 0, 1, &word, NULL), GPUD_ERR_SEALED);
    ck_gpud_err(gpud_fill(of, gpud_out(x), gpud_u32(7)), GPUD_ERR_SEALED);
}

/* A tenant without the right gets the same error whatever there is. */
static void refused(gpud_client *of, const char *me, const char *tenant, const char *name)
{
    char text[256];
    gpud_buffer x = {0};
    ck_gpud_err(gpud_buffer_open_granted(of, tenant, name, &x), GPUD_ERR_NOT_FOUND);
    (void)snprintf(text, sizeof text, "tenant %s grants no buffer %s to tenant %s", tenant, name,
                   me);
    ck_assert_str_eq(gpud_last_error()->text, text);
}

/* FAULT other: a tenant guesses names and handles of what another tenant has
 * required: the same error for a name that is not granted as for one that does not exist
 * defence: `front/model/buffer.c`: buffer_granted; `front/requests/buffer.c`: open_granted
 * mutants: grant-anybody, grant-secret */
START_TEST(a_grant_is_a_sealed_copy_of_the_grantee)
{
    begin("sim", _i % 2 != 0);
    gpud_buffer mine = make_sealed(a, 1);
    gpud_buffer copy = {0};
    gpud_buffer none = {0};
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", "z b", 0));
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &copy));
    ck_holds(b, copy, 1);
    ck_sealed(b, copy);
    ck_holds(a, mine, 1);
    gpud_client *own = client_open(d.url);
    ck_assert_uint_eq(query_value(own, "tenants", "a", "buffers"), 4 * WORDS);
    ck_assert_uint_eq(query_value(own, "tenants", "b", "buffers"), 4 * WORDS);
    refused(c, "c", "a", "weights");
    refused(c, "c", "a", "weighty");
    refused(c, "c", "y", "weights");
    ck_gpud_err(gpud_buffer_open(b, "weights", &none), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_buffer_info(b, mine, &(gpud_buffer_desc){.size = sizeof(gpud_buffer_desc)}),
                GPUD_ERR_BAD_HANDLE);
    ck_gpud_err(gpud_buffer_free(b, mine), GPUD_ERR_BAD_HANDLE);
    /* the grantee's limits count */
    gpud_buffer more[3] = {{0}};
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &more[0]));
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &more[1]));
    ck_gpud_err(gpud_buffer_open_granted(b, "a", "weights", &more[2]), GPUD_ERR_LIMIT);
    ck_gpud_ok(gpud_buffer_free(b, more[0]));
    ck_gpud_ok(gpud_buffer_free(b, more[1]));
    /* what was copied stays; the name goes */
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", NULL, 0));
    refused(b, "b", "a", "weights");
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", "b", 0));
    ck_gpud_ok(gpud_buffer_publish(a, mine, "weights", GPUD_IN, 0));
    refused(b, "b", "a", "weights");
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", "b", 0));
    ck_gpud_ok(gpud_buffer_free(a, mine));
    ck_until(gpud_buffer_open_granted(b, "a", "weights", &none) == GPUD_ERR_NOT_FOUND);
    gpud_close(a);
    a = NULL;
    ck_holds(b, copy, 1);
    gpud_close(own);
    end();
}
END_TEST

/* The texts of a column of the rows that the caller sees, with a space behind each. */
static void column(gpud_client *of, const char *name, char ret_text[256])
{
    gpud_table *t = NULL;
    size_t used = 0;
    ck_gpud_ok(gpud_query(of, "buffers", NULL, &t));
    int at = gpud_table_find(t, name);
    ck_assert_int_ge(at, 0);
    ret_text[0] = '\0';
    for (unsigned row = 0; row < gpud_table_rows(t); row++) {
        used += (size_t)snprintf(ret_text + used, 256 - used, "%s ",
                                 gpud_table_text(t, row, (uint32_t)at));
    }
    gpud_table_free(t);
}

static void ck_column(gpud_client *of, const char *name, const char *wanted)
{
    char text[256];
    column(of, name, text);
    ck_assert_str_eq(text, wanted);
}

/* To an administrator all, to a tenant its own. What is not shared is not there. */
START_TEST(grants_and_copies_are_shown)
{
    begin("sim", _i % 2 != 0);
    gpud_buffer other = make(a, 9);
    gpud_buffer mine = make_sealed(a, 1);
    gpud_buffer copy = {0};
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", "z b", 0));
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &copy));
    gpud_client *own = client_open(d.url);
    ck_column(own, "tenant", "a b ");
    ck_column(own, "granted_to", "z b  ");
    ck_column(own, "copy_of", " a/weights ");
    ck_column(a, "name", "weights ");
    ck_column(a, "rights", "read ");
    ck_column(b, "tenant", "b ");
    ck_column(b, "name", " ");
    ck_column(b, "copy_of", "a/weights ");
    ck_column(b, "granted_to", " ");
    ck_column(c, "tenant", "");
    ck_gpud_ok(gpud_buffer_publish(a, other, "more", GPUD_IN | GPUD_OUT, 0));
    ck_column(a, "rights", "read-write read ");
    ck_gpud_ok(gpud_buffer_free(b, copy));
    ck_column(b, "tenant", "");
    gpud_close(own);
    end();
}
END_TEST

START_TEST(what_is_no_grant_is_refused)
{
    char text[1200];
    begin("sim", false);
    gpud_buffer x = make(a, 1);
    gpud_buffer none = {0};
    ck_gpud_err(gpud_buffer_grant(a, x, "weights", "b", 0), GPUD_ERR_STATE);
    ck_gpud_err(gpud_buffer_open_granted(b, "a", "weights", &none), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_buffer_seal(a, x));
    static const char *const bad[] = {" b", "b ", "b  c", "b,c", "b/c", "b\n"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_gpud_err(gpud_buffer_grant(a, x, "weights", bad[i], 0), GPUD_ERR_INVALID);
    }
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    ck_gpud_err(gpud_buffer_grant(a, x, "weights", text, 0), GPUD_ERR_INVALID);
    text[65] = '\0';
    ck_gpud_err(gpud_buffer_grant(a, x, "weights", text, 0), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_buffer_open_granted(b, "a", "weights", &none), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_buffer_open_granted(b, "", "weights", &none), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_buffer_open_granted(b, NULL, "weights", &none), GPUD_ERR_INVALID);
    text[64] = '\0';
    ck_gpud_ok(gpud_buffer_grant(a, x, "weights", text, 0)); /* no buffer has that name now */
    ck_gpud_ok(gpud_buffer_open_granted(a, "a", "weights", &none)); /* its own, by its name */
    ck_assert_uint_eq(none.id != 0, 1);
    end();
}
END_TEST

/* The descriptor of the worker's host copy; -1: it has none. */
static int host_copy_of(pid_t worker)
{
    char path[64];
    char to[128];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)worker);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    int found = -1;
    for (const struct dirent *e; found < 0 && (e = readdir(dir)) != NULL;) {
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%.16s", (int)worker, e->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        to[n > 0 ? n : 0] = '\0';
        found = strstr(to, "gpud-sealed") != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    }
    (void)closedir(dir);
    return found;
}

/* FAULT other: the worker of a tenant writes the copy of a granted buffer on the host, or ends
 * required: no process can write it, not even root's; each worker restores its own
 * defence: `worker/copy/transfer.c`: settle_host; `front/requests/buffer.c`: check_grant
 * mutants: grant-frozen */
START_TEST(nobody_writes_what_is_granted)
{
    begin("sim", true);
    gpud_buffer mine = make_sealed(a, 1);
    gpud_buffer copy = {0};
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", "b", 0));
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &copy));
    gpud_client *own = client_open(d.url);
    for (unsigned i = 0; i < 2; i++) {
        gpud_client *of = i == 0 ? a : b;
        pid_t worker = (pid_t)query_value(own, "domains", i == 0 ? "a" : "b", "worker");
        int fd = host_copy_of(worker);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq((int)pwrite(fd, "hostile", 7, 0), -1);
        ck_assert_int_eq(errno, EPERM);
        (void)close(fd);
        ck_assert_int_eq(kill(worker, SIGKILL), 0);
        ck_until((pid_t)query_value(own, "domains", i == 0 ? "a" : "b", "worker") != worker);
        ck_holds(of, i == 0 ? mine : copy, 1);
        ck_holds(i == 0 ? b : a, i == 0 ? copy : mine, 1);
    }
    gpud_close(own);
    end();
}
END_TEST

/* FAULT other: the front ends after a grant, and while a copy of it is there
 * required: the next front knows to whom it is granted, and whose the copy is
 * defence: `front/workers/record_encode.c`: record_encode_buffer
 * mutants: grant-record */
START_TEST(a_grant_outlives_the_front)
{
    begin("sim", _i % 2 != 0);
    gpud_buffer mine = make_sealed(a, 1);
    gpud_buffer copy = {0};
    gpud_buffer later = {0};
    ck_gpud_ok(gpud_buffer_grant(a, mine, "weights", "b", 0));
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &copy));
    daemon_kill(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_holds(a, mine, 1);
    ck_holds(b, copy, 1);
    ck_sealed(b, copy);
    ck_gpud_ok(gpud_buffer_open_granted(b, "a", "weights", &later));
    ck_holds(b, later, 1);
    ck_gpud_err(gpud_buffer_open_granted(c, "a", "weights", &later), GPUD_ERR_NOT_FOUND);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grants");
    suite_add_loop(suite, a_grant_is_a_sealed_copy_of_the_grantee, 2);
    suite_add_loop(suite, grants_and_copies_are_shown, 2);
    suite_add(suite, what_is_no_grant_is_refused);
    suite_add(suite, nobody_writes_what_is_granted);
    suite_add_loop(suite, a_grant_outlives_the_front, 2);
    return system_main(suite);
}

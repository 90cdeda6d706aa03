/* A worker that is silent because the host is overloaded. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

static struct daemon d;
static char starve[DAEMON_PATH + 16];

static int become_launcher(void *data)
{
    (void)data;
    int log = open(d.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log >= 0 && dup2(log, STDERR_FILENO) >= 0 && setenv("CUDA_STARVE", starve, 1) == 0) {
        (void)execl(SYSTEM_BIN "/gpud-launcher", "gpud-launcher", "--runtime-dir", d.dir,
                    "--worker", STARVED_WORKER, "--linger", "60", (char *)NULL);
    }
    return 127;
}

static bool note_says(gpud_client *c, const char *text)
{
    char note[64];
    query_text(c, "devices", NULL, "note", note, sizeof note);
    return strstr(note, text) != NULL;
}

/* FAULT 21: worker silent because its thread waits for a processor, or for a disk
 * required: kept with its buffers for up to a minute more, and the log, `gpuctl devices`, `status`
 *   and `explain` say what it waits for; only the processor time that its thread gets counts as
 *   silence
 * defence: `front/workers/worker.c`: check_silence; `front/workers/silence.c`: silence_judge;
 *   `front/workers/beater.c`: beater_look
 * also: `front_silence_test`; `front_beater_test`; `front_overrun_test`:
 *   a_starved_worker_keeps_its_device_from_nobody
 * mutants: starved, starved-for-ever, starved-ran, starved-turn, beater-sent, beater-other,
 *   late-look */
/* Its thread waits in the kernel as for a disk. The rest of the worker runs its jobs. */
START_TEST(a_worker_that_waits_for_a_disk_is_kept)
{
    const float wrote[4] = {1, 2, 3, 4};
    float read[4] = {0};
    char text[512];
    char path[DAEMON_PATH + 16];
    gpud_buffer b = {0};
    /* a confined worker makes no process, which is how its thread waits */
    ck_assert_int_eq(setenv("GPUD_CONFINE", "off", 1), 0);
    daemon_prepare(&d, "--backend", "sim", "--supervised", NULL);
    (void)snprintf(starve, sizeof starve, "%s/starve", d.dir);
    (void)snprintf(path, sizeof path, "%s/launcher.sock", d.dir);
    pid_t launcher = process_start(become_launcher, NULL);
    ck_until(access(path, F_OK) == 0);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    uint64_t worker = query_value(c, "devices", NULL, "worker");
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, 4, wrote, NULL));
    file_write(starve, "", 0);
    ck_until(note_says(c, "waits for a disk"));
    query_text(c, "status", NULL, "problem", text, sizeof text);
    ck_assert_msg(strstr(text, "device 0: its worker is kept, with no heartbeat for") != NULL, "%s",
                  text);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 4, read, NULL));
    ck_assert_mem_eq(read, wrote, sizeof wrote);
    ck_assert_int_eq(unlink(starve), 0);
    ck_until(!note_says(c, "silent"));
    ck_assert_uint_eq(query_value(c, "devices", NULL, "worker"), worker);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    gpud_close(c);
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    ck_assert_int_eq(process_wait(d.pid), 0);
    ck_assert_int_eq(kill(launcher, SIGTERM), 0);
    ck_assert_int_eq(process_wait(launcher), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("starved");
    suite_add(suite, a_worker_that_waits_for_a_disk_is_kept);
    return system_main(suite);
}

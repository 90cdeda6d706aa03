/* Compilers played by the test: it takes what the launcher would and answers as it likes. */
#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/stamp.h"
#include "daemon/front/modules/compiler.h"
#include "tests/unit/front/fake_launcher.h"
#include "tests/unit/front/scratch.h"

static uv_loop_t loop;
static char dir[SCRATCH_PATH];
static struct launcher_link *near_end;
static int far_end;
static struct compiler *compiler;

struct outcome {
    bool done;
    int code;
    char binary[32];
    char log[32];
    struct hash key;
    struct err error;
};

static void on_done(void *data, int code, const struct compile_response *response, struct hash key,
                    const struct err *e)
{
    struct outcome *o = data;
    ck_assert(!o->done);
    o->done = true;
    o->code = code;
    o->key = key;
    o->error = *e;
    ck_assert_int_eq(e->code, code);
    ck_assert(response != NULL ? code == 0 || code == ERR_COMPILE : code != 0);
    if (response != NULL) {
        ck_assert(bytes_to_str(response->binary, o->binary, sizeof o->binary));
        ck_assert(bytes_to_str(response->log, o->log, sizeof o->log));
    }
}

static void on_started(void *data, uint64_t id, pid_t pid, int fd, int code, const char *text)
{
    (void)data;
    (void)pid;
    ck_assert_int_eq(fd, -1);
    ck_assert(compiler_started(compiler, id, code, text));
}

static void on_ended(void *data, uint64_t id, int status, bool timed_out)
{
    (void)data;
    ck_assert(compiler_ended(compiler, id, status, timed_out));
}

static void on_lost(void *data, const struct err *e)
{
    (void)data;
    (void)e;
    compiler_relink(compiler, NULL);
}

static const struct launcher_callbacks callbacks = {
    .started = on_started, .ended = on_ended, .lost = on_lost};

static void create(const char *cache_dir)
{
    struct err e = ERR_INIT;
    struct compiler_options options = {
        .cache_dir = cache_dir,
        .build = FAKE_BUILD,
        .parallel = 2,
        .queue_max = 2,
        .limits = {.cpu_s = 7, .memory = 64u << 20, .wall_ns = 9000000}};
    ck_assert_int_eq(compiler_create(&loop, near_end, &options, &compiler, &e), 0);
}

static void setup(void)
{
    struct err e = ERR_INIT;
    scratch_make(dir);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(
        fake_launcher_open(&loop, dir, FAKE_BUILD, &callbacks, NULL, &near_end, &far_end, &e), 0);
    create(scratch_path(dir, "cache"));
    ck_assert_ptr_null(compiler_cache_error(compiler));
}

static void teardown(void)
{
    compiler_destroy(compiler);
    launcher_link_close(near_end);
    (void)close(far_end);
    loop_finish(&loop);
    scratch_remove(dir);
}

static struct compiler_request request_for(const char *source)
{
    return (struct compiler_request){.backend = "sim",
                                     .device = "0",
                                     .options = "devices=2",
                                     .arch = "sim1",
                                     .owner = "tenant",
                                     .lang = 1,
                                     .source = bytes_str(source),
                                     .file = "a.cl",
                                     .build_options = "-O2",
                                     .signature = ""};
}

static void start(const char *source, struct outcome *o)
{
    struct err e = ERR_INIT;
    struct compiler_request request = request_for(source);
    memset(o, 0, sizeof *o);
    ck_assert_msg(compiler_start(compiler, &request, on_done, o, &e) == 0, "%s", e.text);
    ck_assert(!o->done);
}

/* A compiler as the launcher runs it. */
struct run {
    uint64_t id;
    struct memfd request;
    struct memfd response;
    struct compile_request asked;
};

static struct run take_run(void)
{
    struct run run = {.request = MEMFD_NONE, .response = MEMFD_NONE};
    struct msg_l_compiler asked;
    struct frame_fds fds;
    struct err e = ERR_INIT;
    fake_recv(far_end, &schema_msg_l_compiler, &asked, &fds);
    run.id = asked.id;
    ck_assert_uint_eq(asked.cpu_s, 7);
    ck_assert_uint_eq(asked.wall_ns, 9000000);
    ck_assert_int_eq(fds.count, 2);
    ck_assert_int_eq(memfd_adopt(fds.fd[0], 8, false, &run.request, &e), 0);
    ck_assert_int_eq(memfd_adopt(fds.fd[1], 8, true, &run.response, &e), 0);
    ck_assert_int_eq(compile_request_read(&run.request, &run.asked, &e), 0);
    return run;
}

static void end_run(struct run *run, int status, bool timed_out)
{
    struct msg_l_started started = {.id = run->id, .pid = 4};
    struct msg_l_ended ended = {
        .id = run->id, .pid = 4, .status = (uint64_t)status, .timed_out = timed_out};
    fake_send(far_end, &schema_msg_l_started, &started, NULL);
    fake_send(far_end, &schema_msg_l_ended, &ended, NULL);
    memfd_finish(&run->request);
    memfd_finish(&run->response);
}

static char compiler_stamp[512]; /* told by answers */

static void answer(struct run *run, int code, const char *binary, const char *text)
{
    struct err e = ERR_INIT;
    struct compile_response response = {.code = code,
                                        .text = bytes_str(text),
                                        .log = bytes_str("log"),
                                        .compiler = bytes_str(compiler_stamp),
                                        .binary = bytes_str(binary)};
    ck_assert_int_eq(compile_response_write(&response, &run->response, &e), 0);
    end_run(run, 0, false);
}

static struct compiler_stats stats(void)
{
    struct compiler_stats s;
    compiler_stats(compiler, &s);
    return s;
}

START_TEST(compiles_and_remembers)
{
    struct outcome first;
    struct outcome second;
    start("source", &first);
    struct run run = take_run();
    ck_assert(bytes_equal_str(run.asked.source, "source"));
    ck_assert(bytes_equal_str(run.asked.options, "-O2"));
    ck_assert(bytes_equal_str(run.asked.file, "a.cl"));
    answer(&run, 0, "binary", "");
    loop_until(&loop, &first.done);
    ck_assert_int_eq(first.code, 0);
    ck_assert_str_eq(first.binary, "binary");
    start("source", &second);
    loop_until(&loop, &second.done);
    ck_assert_int_eq(second.code, 0);
    ck_assert_str_eq(second.binary, "binary");
    ck_assert(hash_equal(first.key, second.key));
    ck_assert_uint_eq(stats().hits, 1);
    ck_assert_uint_eq(stats().misses, 1);
    ck_assert_uint_eq(stats().started, 1);
    ck_assert(!fake_has_frame(far_end));
}
END_TEST

START_TEST(whatever_it_depends_on_is_told_apart)
{
    struct outcome o[8];
    struct err e = ERR_INIT;
    struct compiler_request r[8];
    for (unsigned i = 0; i < 8; i++) {
        r[i] = request_for("source");
        memset(&o[i], 0, sizeof o[i]);
    }
    r[1].owner = "another";
    r[2].arch = "sim2";
    r[3].build_options = "-O3";
    r[4].lang = 2;
    r[5].f64 = true;
    r[6].signature = "//@kernel k()";
    r[7].options = "devices=3";
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(compiler_start(compiler, &r[i], on_done, &o[i], &e), 0);
        struct run run = take_run(); /* none was found in the cache */
        answer(&run, 0, "binary", "");
        loop_until(&loop, &o[i].done);
        for (unsigned before = 0; before < i; before++) {
            ck_assert(!hash_equal(o[before].key, o[i].key));
        }
    }
    ck_assert_uint_eq(stats().misses, 8);
}
END_TEST

START_TEST(a_source_with_an_error)
{
    struct outcome o;
    for (unsigned i = 0; i < 2; i++) { /* errors are not remembered */
        start("bad source", &o);
        struct run run = take_run();
        answer(&run, ERR_COMPILE, "", "line 1: no");
        loop_until(&loop, &o.done);
        ck_assert_int_eq(o.code, ERR_COMPILE);
        ck_assert_str_eq(o.error.text, "line 1: no");
        ck_assert_str_eq(o.log, "log");
    }
    ck_assert_uint_eq(stats().failed, 2);
}
END_TEST

struct ending {
    int status;
    bool timed_out;
    int code;
    const char *says;
};

static const struct ending endings[] = {
    {SIGKILL, true, ERR_COMPILE_LIMIT, "after 9 ms"},
    {SIGXCPU, false, ERR_COMPILE_LIMIT, "over 7 s"},
    {SIGKILL, false, ERR_COMPILE_LIMIT, "killed"},
    {COMPILE_EXIT_MEMORY << 8, false, ERR_COMPILE_LIMIT, "it may take 64 MiB"},
    {COMPILE_EXIT_STACK << 8, false, ERR_COMPILE_LIMIT, "nests too deeply"},
    {SIGSEGV, false, ERR_COMPILE, "crashed (Segmentation fault)"},
    {SIGABRT, false, ERR_COMPILE, "crashed"},
    {3 << 8, false, ERR_COMPILE, "status 3"},
    {0, false, ERR_COMPILE, "without an answer"},
};

START_TEST(compilers_that_end_without_an_answer)
{
    const struct ending *ending = &endings[_i];
    struct outcome o;
    start("source", &o);
    struct run run = take_run();
    end_run(&run, ending->status, ending->timed_out);
    loop_until(&loop, &o.done);
    ck_assert_msg(o.code == ending->code, "%s: %s", err_name(o.code), o.error.text);
    ck_assert_msg(strstr(o.error.text, ending->says) != NULL, "%s", o.error.text);
    ck_assert_uint_eq(stats().running, 0);
}
END_TEST

START_TEST(answers_that_make_no_sense)
{
    struct outcome o;
    start("source", &o);
    struct run run = take_run();
    uint64_t length = _i == 0 ? UINT64_MAX : _i == 1 ? COMPILE_RESPONSE_BYTES : 100;
    switch (_i) {
    case 3:
        answer(&run, 0, "", "");
        break;
    case 4:
        answer(&run, -12345, "", "made up");
        break;
    default:
        memcpy(run.response.data, &length, sizeof length);
        memset(run.response.data + 8, 0xdd, 100);
        end_run(&run, 0, false);
        break;
    }
    loop_until(&loop, &o.done);
    ck_assert_int_eq(o.code, ERR_COMPILE);
    struct outcome again;
    start("source", &again); /* nothing of it is in the cache */
    run = take_run();
    answer(&run, 0, "good", "");
    loop_until(&loop, &again.done);
    ck_assert_str_eq(again.binary, "good");
}
END_TEST

START_TEST(a_compiler_that_cannot_be_started)
{
    struct outcome o;
    start("source", &o);
    struct run run = take_run();
    struct msg_l_started failed = {
        .id = run.id, .code = ERR_NOT_FOUND, .text = bytes_str("no gpud-compile")};
    fake_send(far_end, &schema_msg_l_started, &failed, NULL);
    loop_until(&loop, &o.done);
    ck_assert_int_eq(o.code, ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(o.error.text, "no gpud-compile"));
    memfd_finish(&run.request);
    memfd_finish(&run.response);
}
END_TEST

START_TEST(two_run_two_wait_and_the_next_is_refused)
{
    static const char *const sources[] = {"s0", "s1", "s2", "s3"};
    struct outcome o[4];
    struct err e = ERR_INIT;
    struct run run[2];
    for (unsigned i = 0; i < 4; i++) {
        start(sources[i], &o[i]);
    }
    struct outcome refused = {.done = false};
    struct compiler_request request = request_for("s4");
    ck_assert_int_eq(compiler_start(compiler, &request, on_done, &refused, &e), ERR_BUSY);
    run[0] = take_run();
    run[1] = take_run();
    ck_assert(!fake_has_frame(far_end));
    ck_assert_uint_eq(stats().queued, 2);
    answer(&run[1], 0, "b1", "");
    loop_until(&loop, &o[1].done);
    run[1] = take_run();
    ck_assert(bytes_equal_str(run[1].asked.source, "s2"));
    answer(&run[1], 0, "b2", "");
    loop_until(&loop, &o[2].done);
    run[1] = take_run();
    ck_assert(bytes_equal_str(run[1].asked.source, "s3"));
    answer(&run[0], 0, "b0", "");
    answer(&run[1], 0, "b3", "");
    loop_until(&loop, &o[0].done);
    loop_until(&loop, &o[3].done);
    ck_assert_str_eq(o[0].binary, "b0");
    ck_assert_str_eq(o[3].binary, "b3");
    ck_assert(!refused.done);
}
END_TEST

static void start_for(const char *owner, unsigned number, struct outcome *o, int code)
{
    char source[16];
    struct err e = ERR_INIT;
    (void)snprintf(source, sizeof source, "%s%u", owner, number);
    struct compiler_request request = request_for(source);
    request.owner = owner;
    memset(o, 0, sizeof *o);
    ck_assert_int_eq(compiler_start(compiler, &request, on_done, o, &e), code);
}

/* Sources of one tenant that take as long as they may: another one's starts at once, and its next
 * ones wait for one of the others at most. */
START_TEST(tenants_take_turns)
{
    enum { BOMBS = 20, GOOD = 3 };
    static struct outcome bomb[BOMBS]; /* answered when the compiler is destroyed */
    static struct outcome good[GOOD];
    static struct outcome refused;
    struct err e = ERR_INIT;
    const struct compiler_options options = {
        .build = FAKE_BUILD,
        .parallel = 2,
        .owner_parallel = 1,
        .queue_max = 30,
        .owner_queue_max = BOMBS - 1,
        .limits = {.cpu_s = 7, .memory = 64u << 20, .wall_ns = 9000000}};
    compiler_destroy(compiler);
    ck_assert_int_eq(compiler_create(&loop, near_end, &options, &compiler, &e), 0);
    for (unsigned i = 0; i < BOMBS; i++) {
        start_for("bomb", i, &bomb[i], 0);
    }
    start_for("bomb", BOMBS, &refused, ERR_BUSY);
    struct run run = take_run();
    ck_assert(!fake_has_frame(far_end)); /* a place is left for others */
    for (unsigned i = 0; i < GOOD; i++) {
        start_for("good", i, &good[i], 0);
    }
    for (unsigned i = 0; i < GOOD; i++) {
        struct run mine = take_run();
        ck_assert_msg(memcmp(mine.asked.source.data, "good", 4) == 0, "%.*s",
                      (int)mine.asked.source.size, (const char *)mine.asked.source.data);
        answer(&mine, 0, "b", "");
        loop_until(&loop, &good[i].done);
    }
    end_run(&run, SIGKILL, true);
    loop_until(&loop, &bomb[0].done);
    run = take_run();
    end_run(&run, SIGKILL, true);
    loop_until(&loop, &bomb[1].done);
    run = take_run(); /* all that are left are answered when it is destroyed */
    memfd_finish(&run.request);
    memfd_finish(&run.response);
}
END_TEST

/* With one place: behind what runs, before all that waits. */
START_TEST(what_comes_second_is_second)
{
    static struct outcome bomb[8];
    static struct outcome good;
    struct err e = ERR_INIT;
    const struct compiler_options options = {
        .build = FAKE_BUILD,
        .parallel = 1,
        .queue_max = 30,
        .limits = {.cpu_s = 7, .memory = 64u << 20, .wall_ns = 9000000}};
    compiler_destroy(compiler);
    ck_assert_int_eq(compiler_create(&loop, near_end, &options, &compiler, &e), 0);
    for (unsigned i = 0; i < 8; i++) {
        start_for("bomb", i, &bomb[i], 0);
    }
    start_for("good", 0, &good, 0);
    struct run run = take_run();
    answer(&run, 0, "b", "");
    loop_until(&loop, &bomb[0].done);
    run = take_run();
    ck_assert(bytes_equal_str(run.asked.source, "good0"));
    answer(&run, 0, "b", "");
    loop_until(&loop, &good.done);
    run = take_run();
    ck_assert(bytes_equal_str(run.asked.source, "bomb1"));
    memfd_finish(&run.request);
    memfd_finish(&run.response);
}
END_TEST

/* _i 0: its successor comes later, and another source meanwhile. */
START_TEST(a_lost_launcher)
{
    struct outcome o[3];
    struct err e = ERR_INIT;
    unsigned count = _i == 0 ? 2 : 3;
    start("s0", &o[0]);
    struct run first = take_run();
    memfd_finish(&first.request);
    memfd_finish(&first.response);
    if (_i == 0) {
        compiler_relink(compiler, NULL);
        start("s1", &o[1]);
    } else {
        start("s1", &o[1]);
        start("s2", &o[2]);
        struct run second = take_run();
        memfd_finish(&second.request);
        memfd_finish(&second.response);
    }
    struct launcher_link *old = near_end;
    (void)close(far_end);
    ck_assert_int_eq(
        fake_launcher_open(&loop, dir, FAKE_BUILD, &callbacks, NULL, &near_end, &far_end, &e), 0);
    compiler_relink(compiler, near_end);
    launcher_link_close(old);
    for (unsigned i = 0; i < count; i++) {
        struct run again = take_run();
        ck_assert_uint_ne(again.id, first.id);
        answer(&again, 0, "b", "");
        loop_until(&loop, &o[i].done); /* in the order of before */
        ck_assert_int_eq(o[i].code, 0);
    }
}
END_TEST

START_TEST(ids_of_others)
{
    ck_assert(!compiler_started(compiler, 5, 0, ""));
    ck_assert(!compiler_ended(compiler, 5, 0, false));
    /* of a gpud before this one: nobody else's either */
    ck_assert(compiler_ended(compiler, (UINT64_C(1) << 63) | 5, 0, false));
}
END_TEST

START_TEST(destroyed_with_work_at_hand)
{
    struct outcome o[4];
    start("cached", &o[3]);
    struct run run = take_run();
    answer(&run, 0, "binary", "");
    loop_until(&loop, &o[3].done);
    start("s0", &o[0]);
    start("s1", &o[1]);
    start("s2", &o[2]);
    start("cached", &o[3]);
    struct run runs[2] = {take_run(), take_run()};
    compiler_destroy(compiler);
    compiler = NULL;
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(o[i].done);
        ck_assert_int_eq(o[i].code, ERR_CLOSED);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct msg_l_kill kill_msg;
        fake_recv(far_end, &schema_msg_l_kill, &kill_msg, NULL);
        ck_assert_uint_eq(kill_msg.id, runs[i].id);
        memfd_finish(&runs[i].request);
        memfd_finish(&runs[i].response);
    }
}
END_TEST

/* Spoils each file of the cache at its end. */
static void damage_cache(void)
{
    DIR *top = opendir(scratch_path(dir, "cache"));
    const struct dirent *d;
    unsigned count = 0;
    while ((d = readdir(top)) != NULL) {
        char folder[300];
        (void)snprintf(folder, sizeof folder, "%s/cache/%s", dir, d->d_name);
        DIR *sub = d->d_name[0] == '.' ? NULL : opendir(folder);
        const struct dirent *f;
        while (sub != NULL && (f = readdir(sub)) != NULL) {
            char path[700];
            (void)snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
            if (f->d_name[0] != '.') {
                struct stat st;
                ck_assert_int_eq(stat(path, &st), 0);
                ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
                count++;
            }
        }
        if (sub != NULL) {
            (void)closedir(sub);
        }
    }
    (void)closedir(top);
    ck_assert_uint_eq(count, 1);
}

START_TEST(a_damaged_binary_is_made_again)
{
    struct outcome o;
    for (unsigned i = 0; i < 2; i++) {
        start("source", &o);
        struct run run = take_run();
        answer(&run, 0, "binary", "");
        loop_until(&loop, &o.done);
        if (i == 0) {
            damage_cache();
        }
    }
    ck_assert_uint_eq(stats().damaged, 1);
    ck_assert_uint_eq(stats().started, 2);
    start("source", &o);
    loop_until(&loop, &o.done);
    ck_assert_str_eq(o.binary, "binary");
    ck_assert_uint_eq(stats().hits, 1);
}
END_TEST

START_TEST(another_compiler_makes_it_again)
{
    struct outcome o;
    const char *library = scratch_path(dir, "libcompiler.so.1");
    scratch_write(library, "old", 3);
    (void)stamp_make(library, compiler_stamp, sizeof compiler_stamp);
    for (unsigned i = 0; i < 4; i++) {
        start("source", &o);
        if (i == 0 || i == 2) {
            struct run run = take_run();
            answer(&run, 0, i == 0 ? "first" : "second", "");
        }
        loop_until(&loop, &o.done);
        ck_assert_str_eq(o.binary, i < 2 ? "first" : "second");
        if (i == 1) {
            scratch_write(library, "newer", 5);
            (void)stamp_make(library, compiler_stamp, sizeof compiler_stamp);
        }
    }
    ck_assert_int_eq(unlink(library), 0); /* gone: what it made is all there is */
    start("source", &o);
    loop_until(&loop, &o.done);
    ck_assert_str_eq(o.binary, "second");
    ck_assert_uint_eq(stats().started, 2);
    ck_assert_uint_eq(stats().damaged, 0);
    compiler_stamp[0] = '\0';
}
END_TEST

static void relink(const char *hash)
{
    struct err e = ERR_INIT;
    struct launcher_link *old = near_end;
    (void)close(far_end);
    (void)snprintf(fake_compiler_hash, sizeof fake_compiler_hash, "%s", hash);
    ck_assert_int_eq(
        fake_launcher_open(&loop, dir, FAKE_BUILD, &callbacks, NULL, &near_end, &far_end, &e), 0);
    ck_assert_str_eq(launcher_compiler_hash(near_end), hash);
    compiler_relink(compiler, near_end);
    launcher_link_close(old);
}

/* What it cuts and adds is in no version of the vendor's compiler. */
START_TEST(another_gpud_compile_makes_it_again)
{
    static const char *const hash[] = {"one", "one", "two", "one"};
    static const char *const want[] = {"0", "0", "2", "0"};
    for (unsigned i = 0; i < 4; i++) {
        struct outcome o;
        relink(hash[i]);
        start("source", &o);
        if (i == 0 || i == 2) {
            struct run run = take_run();
            answer(&run, 0, want[i], "");
        }
        loop_until(&loop, &o.done);
        ck_assert_str_eq(o.binary, want[i]);
    }
    ck_assert_uint_eq(stats().started, 2);
}
END_TEST

/* Asked of one launcher and made by the next: it is no answer to what is asked of the first. */
START_TEST(what_changes_its_launcher_is_not_kept)
{
    struct outcome o;
    relink("one");
    start("source", &o);
    struct run run = take_run();
    memfd_finish(&run.request);
    memfd_finish(&run.response);
    relink("two");
    run = take_run();
    answer(&run, 0, "binary", "");
    loop_until(&loop, &o.done);
    ck_assert_str_eq(o.binary, "binary");
    relink("one");
    start("source", &o);
    run = take_run();
    answer(&run, 0, "again", "");
    loop_until(&loop, &o.done);
    ck_assert_str_eq(o.binary, "again");
}
END_TEST

/* A full disk, played by a limit on files: told as long as it lasts. */
START_TEST(a_binary_that_cannot_be_kept_is_told)
{
    struct outcome o;
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit full = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    for (unsigned i = 0; i < 3; i++) {
        start("source", &o);
        struct run run = take_run();
        answer(&run, 0, "binary", "");
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, i < 2 ? &full : &before), 0);
        loop_until(&loop, &o.done);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        ck_assert_str_eq(o.binary, "binary");
        ck_assert((compiler_cache_error(compiler) != NULL) == (i < 2));
    }
    start("source", &o);
    loop_until(&loop, &o.done);
    ck_assert_uint_eq(stats().hits, 1);
}
END_TEST

static uint64_t tend_under(const struct rlimit *limit, const struct rlimit *after, uint64_t now)
{
    int rc = setrlimit(RLIMIT_FSIZE, limit);
    uint64_t next = compiler_tend(compiler, now);
    rc |= setrlimit(RLIMIT_FSIZE, after);
    ck_assert_int_eq(rc, 0);
    return next;
}

/* The next kernel may come in a week. The limits leave room for the files that Check writes. */
START_TEST(a_disk_with_room_again_is_noticed)
{
    struct outcome o;
    struct rlimit before;
    static char source[1 << 19]; /* the cache has it, too */
    memset(source, 's', sizeof source - 1);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit full = {.rlim_cur = 1 << 16, .rlim_max = before.rlim_max};
    const struct rlimit little = {.rlim_cur = 1 << 18, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_uint_eq(compiler_tend(compiler, clock_now_ns()), NS_NEVER);
    start(source, &o);
    struct run run = take_run();
    answer(&run, 0, "binary", "");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
    loop_until(&loop, &o.done);
    uint64_t now = clock_now_ns();
    uint64_t next = tend_under(&before, &before, now); /* too early */
    ck_assert_uint_gt(next, now);
    ck_assert_uint_le(next, now + COMPILER_RETRY_NS);
    ck_assert_uint_eq(tend_under(&little, &before, next), next + COMPILER_RETRY_NS);
    ck_assert_ptr_nonnull(compiler_cache_error(compiler)); /* room, but not for such a binary */
    next += COMPILER_RETRY_NS;
    ck_assert_uint_eq(tend_under(&before, &before, next), NS_NEVER);
    ck_assert_ptr_null(compiler_cache_error(compiler));
    ck_assert_int_eq(rmdir(scratch_path(dir, "cache")), 0); /* nothing is left there */
}
END_TEST

START_TEST(a_cache_that_cannot_be_used_is_done_without)
{
    struct outcome o;
    compiler_destroy(compiler);
    scratch_write(scratch_path(dir, "file"), "x", 1);
    create(scratch_path(dir, "file"));
    ck_assert_ptr_nonnull(compiler_cache_error(compiler));
    for (unsigned i = 0; i < 2; i++) {
        start("source", &o);
        struct run run = take_run();
        answer(&run, 0, "binary", "");
        loop_until(&loop, &o.done);
        ck_assert_int_eq(o.code, 0);
    }
    ck_assert_uint_eq(stats().started, 2);
}
END_TEST

START_TEST(a_source_that_is_too_long)
{
    struct err e = ERR_INIT;
    struct outcome o = {.done = false};
    char *source = malloc(PROTO_SOURCE_MAX + 2);
    memset(source, 'x', PROTO_SOURCE_MAX + 1);
    source[PROTO_SOURCE_MAX + 1] = '\0';
    struct compiler_request request = request_for(source);
    ck_assert_int_eq(compiler_start(compiler, &request, on_done, &o, &e), ERR_LIMIT);
    source[PROTO_SOURCE_MAX] = '\0';
    start(source, &o);
    free(source);
    struct run run = take_run();
    ck_assert_uint_eq(run.asked.source.size, PROTO_SOURCE_MAX);
    answer(&run, 0, "binary", "");
    loop_until(&loop, &o.done);
    ck_assert_int_eq(o.code, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compiler");
    TCase *tc = tcase_create("compiler");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, compiles_and_remembers);
    tcase_add_test(tc, whatever_it_depends_on_is_told_apart);
    tcase_add_test(tc, a_source_with_an_error);
    tcase_add_loop_test(tc, compilers_that_end_without_an_answer, 0,
                        (int)(sizeof endings / sizeof endings[0]));
    tcase_add_loop_test(tc, answers_that_make_no_sense, 0, 5);
    tcase_add_test(tc, a_compiler_that_cannot_be_started);
    tcase_add_test(tc, two_run_two_wait_and_the_next_is_refused);
    tcase_add_test(tc, tenants_take_turns);
    tcase_add_test(tc, what_comes_second_is_second);
    tcase_add_loop_test(tc, a_lost_launcher, 0, 2);
    tcase_add_test(tc, ids_of_others);
    tcase_add_test(tc, destroyed_with_work_at_hand);
    tcase_add_test(tc, a_damaged_binary_is_made_again);
    tcase_add_test(tc, another_compiler_makes_it_again);
    tcase_add_test(tc, another_gpud_compile_makes_it_again);
    tcase_add_test(tc, what_changes_its_launcher_is_not_kept);
    tcase_add_test(tc, a_binary_that_cannot_be_kept_is_told);
    tcase_add_test(tc, a_disk_with_room_again_is_noticed);
    tcase_add_test(tc, a_cache_that_cannot_be_used_is_done_without);
    tcase_add_test(tc, a_source_that_is_too_long);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

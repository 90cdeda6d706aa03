/* gpud: the front. Arguments, configuration, signals, the loop. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/runtime.h"
#include "daemon/front/pipeline.h"
#include "daemon/front/requests/reload.h"
#include "daemon/front/settings/accepted.h"
#include "daemon/front/settings/tls_files.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/tenants/tenant_quota.h"

#define EXIT_USAGE 2
#define HEAP_KEPT  (16 * 1024 * 1024) /* bytes */
#define HEAP_STEP  (256 * 1024)       /* bytes */
/* Pieces up to this size come from the heap: arrays that travel with a job. A larger one is mapped
 * for its time, and each of its pages costs a page fault. */
#define HEAP_PIECE (8 * 1024 * 1024)

static const char usage[] =
    "usage: gpud [OPTION]...\n"
    "Serves the GPUs of this host to the services on it.\n"
    "\n"
    "  --config FILE        settings instead of /etc/gpud/gpud.conf, its drop-ins and tenants.d\n"
    "  --check-config       read the settings, say what is wrong with them, and end\n"
    "  --listen URL         ipc:///path, tcp://127.0.0.1:port or tls+tcp://address:port; may be\n"
    "                       given again\n"
    "  --backend NAME       auto, cuda, opencl or sim\n"
    "  --devices LIST       numbers of the back end's devices, as 0,2\n"
    "  --backend-options O  options of the back end, as devices=2 for sim\n"
    "  --runtime-dir DIR    sockets; default /run/gpud\n"
    "  --cache-dir DIR      compiled kernels; default /var/cache/gpud\n"
    "  --set KEY=VALUE      any setting, as jobs.window=4\n"
    "  --record FILE        record the stream of jobs to FILE, which must not exist, for gpuctl\n"
    "                       replay; [record] file_bytes is its limit\n"
    "  --record-data        with the contents of arrays, not only their sizes and hashes\n"
    "  --supervised         the launcher is a service of its own: it is not started or ended here\n"
    "  --foreground         accepted; gpud never goes to the background by itself\n"
    "  --version            version and build\n"
    "  --help               this text\n";

enum option_code {
    OPT_CONFIG = 1000,
    OPT_CHECK,
    OPT_LISTEN,
    OPT_BACKEND,
    OPT_DEVICES,
    OPT_BACKEND_OPTIONS,
    OPT_RUNTIME_DIR,
    OPT_CACHE_DIR,
    OPT_SET,
    OPT_RECORD,
    OPT_RECORD_DATA,
    OPT_SUPERVISED,
    OPT_FOREGROUND,
    OPT_VERSION,
    OPT_HELP,
};

static const struct option options[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"check-config", no_argument, NULL, OPT_CHECK},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"backend", required_argument, NULL, OPT_BACKEND},
    {"devices", required_argument, NULL, OPT_DEVICES},
    {"backend-options", required_argument, NULL, OPT_BACKEND_OPTIONS},
    {"runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR},
    {"cache-dir", required_argument, NULL, OPT_CACHE_DIR},
    {"set", required_argument, NULL, OPT_SET},
    {"record", required_argument, NULL, OPT_RECORD},
    {"record-data", no_argument, NULL, OPT_RECORD_DATA},
    {"supervised", no_argument, NULL, OPT_SUPERVISED},
    {"foreground", no_argument, NULL, OPT_FOREGROUND},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

struct arguments {
    const char *config;
    bool check;
    bool supervised;
    const char *record; /* NULL: not given */
    bool record_data;
    char listen[1024]; /* URLs, comma separated */
    struct {
        const char *option; /* the option that set it; static */
        const char *key;
        const char *value;
    } set[64];
    unsigned set_count;
    char settings_bad[ERR_TEXT_MAX]; /* error for which the files are ignored; "": none */
};

static int remember(struct arguments *a, const char *option, const char *key, const char *value,
                    struct err *e)
{
    if (a->set_count == sizeof a->set / sizeof a->set[0]) {
        return err_set(e, ERR_LIMIT, "--%s %s: the command line takes at most %u settings", option,
                       value, a->set_count);
    }
    a->set[a->set_count].option = option;
    a->set[a->set_count].key = key;
    a->set[a->set_count++].value = value;
    return 0;
}

static int remember_listen(struct arguments *a, const char *url, struct err *e)
{
    size_t used = strlen(a->listen);
    int n = snprintf(a->listen + used, sizeof a->listen - used, "%s%s", used > 0 ? "," : "", url);
    return n > 0 && (size_t)n < sizeof a->listen - used
               ? 0
               : err_set(e, ERR_LIMIT, "--listen %.60s: all addresses together have over %zu bytes",
                         url, sizeof a->listen - 1);
}

static int remember_set(struct arguments *a, char *text, struct err *e)
{
    char *equals = strchr(text, '=');
    if (equals == NULL) {
        return err_set(e, ERR_INVALID, "--set %s: not KEY=VALUE, as jobs.window=4", text);
    }
    *equals = '\0';
    return remember(a, "set", text, equals + 1, e);
}

/* Flushes stdout and reports a failed write. Returns the exit status. */
static int said(void)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    failed = fflush(stdout) != 0 || failed;
    if (failed) {
        (void)fprintf(stderr, "gpud: writing the output: %s\n",
                      errno != 0 ? strerror(errno) : "the output is incomplete");
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* What an option without a value sets; NULL: it is another one. */
static bool *flag_of(struct arguments *a, int option)
{
    switch (option) {
    case OPT_CHECK:
        return &a->check;
    case OPT_RECORD_DATA:
        return &a->record_data;
    case OPT_SUPERVISED:
        return &a->supervised;
    default:
        return NULL;
    }
}

/* Takes one option. Returns -1, or the exit status if the process is to end. */
static int take(struct arguments *a, int option, char *value)
{
    struct err e = ERR_INIT;
    int rc = 0;
    bool *flag = flag_of(a, option);
    if (flag != NULL) {
        *flag = true;
        return -1;
    }
    switch (option) {
    case OPT_CONFIG:
        a->config = value;
        break;
    case OPT_LISTEN:
        rc = remember_listen(a, value, &e);
        break;
    case OPT_BACKEND:
        rc = remember(a, "backend", "daemon.backend", value, &e);
        break;
    case OPT_DEVICES:
        rc = remember(a, "devices", "daemon.devices", value, &e);
        break;
    case OPT_BACKEND_OPTIONS:
        rc = remember(a, "backend-options", "daemon.backend_options", value, &e);
        break;
    case OPT_RUNTIME_DIR:
        rc = remember(a, "runtime-dir", "daemon.runtime_dir", value, &e);
        break;
    case OPT_CACHE_DIR:
        rc = remember(a, "cache-dir", "daemon.cache_dir", value, &e);
        break;
    case OPT_SET:
        rc = remember_set(a, value, &e);
        break;
    case OPT_RECORD:
        a->record = value;
        break;
    case OPT_FOREGROUND:
        break;
    case OPT_VERSION:
        (void)printf("gpud %s (build %s)\n", GPUD_VERSION, GPUD_BUILD);
        return said();
    case OPT_HELP:
        (void)fputs(usage, stdout);
        return said();
    default: /* getopt has printed the error */
        rc = err_set(&e, ERR_INVALID, "bad option; gpud --help lists them");
        break;
    }
    if (rc != 0) {
        (void)fprintf(stderr, "gpud: %s\n", e.text);
        return EXIT_USAGE;
    }
    return -1;
}

static int parse(struct arguments *a, int argc, char **argv)
{
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int status = take(a, option, optarg);
        if (status >= 0) {
            return status;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "gpud: %s is no option; gpud --help lists them\n", argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
}

/* GPUD_LOG sets the log level for this start and the processes that it starts, over that of the
 * files. */
static int read_environment(struct config *config, struct err *e)
{
    const char *level = getenv("GPUD_LOG");
    int rc = log_environment(e);
    if (rc != 0 || level == NULL || level[0] == '\0') {
        return rc;
    }
    rc = config_set(config, "daemon.log_level", level, e);
    return rc != 0 ? err_wrap(e, "GPUD_LOG") : 0;
}

/* root: the root folder of the settings files; NULL: the usual files, or --config. */
static int read_config(const struct arguments *a, const char *root, struct config *config,
                       struct err *e)
{
    config_defaults(config);
    if (root != NULL) {
        (void)snprintf(config->root, sizeof config->root, "%s", root);
    }
    int rc = config_load(config, root == NULL ? a->config : NULL, e);
    rc = rc == 0 ? read_environment(config, e) : rc;
    for (unsigned i = 0; rc == 0 && i < a->set_count; i++) {
        rc = config_set(config, a->set[i].key, a->set[i].value, e);
        if (rc != 0) {
            (void)err_wrap(e, "--%s", a->set[i].option);
        }
    }
    if (rc == 0 && a->listen[0] != '\0') {
        rc = config_set(config, "daemon.listen", a->listen, e);
        if (rc != 0) {
            (void)err_wrap(e, "--listen");
        }
    }
    return rc != 0 ? rc : config_complete(config, e);
}

static int read_settings(void *data, struct config *ret_config, struct err *e)
{
    return read_config(data, NULL, ret_config, e);
}

static int check_tenants(const struct config *config, struct err *e)
{
    struct tenant_rules rules = {.count = 0};
    int rc = tenant_rules_read(config, &rules, e);
    tenant_rules_finish(&rules);
    return rc;
}

/* For --check-config: a start only logs what is wrong with the files that settings name. */
static int check_files(const struct config *config, struct err *e)
{
    struct tenant_rules rules = {.count = 0};
    struct tls_files tls = {.cert = NULL};
    int rc = tenant_rules_read(config, &rules, e);
    rc = rc == 0 ? tenant_rules_folders(&rules, config, e) : rc;
    rc = rc == 0 ? remote_files_read(config, &rules, &tls, e) : rc;
    if (rc == 0 && tls_end_near(&tls.end, clock_wall_ns() / NS_PER_S)) {
        char text[TLS_END_TEXT];
        tls_end_text(&tls.end, "expires", text);
        (void)fprintf(stderr, "gpud: warning: %s\n", text);
    }
    tls_files_finish(&tls);
    tenant_rules_finish(&rules);
    return rc;
}

static int read_all(const struct arguments *a, const char *root, struct config *config,
                    struct err *e)
{
    int rc = read_config(a, root, config, e);
    return rc == 0 ? check_tenants(config, e) : rc;
}

/* Reads the settings of this start. If the files are bad, it uses the settings that were accepted
 * last, and `a->settings_bad` gets the error. The start must not fail for that, because at a
 * restart systemd has already ended the former front. */
static int choose_settings(struct arguments *a, struct config *config, struct err *e)
{
    char root[CONFIG_PATH];
    struct err ignored = ERR_INIT;
    int rc = read_all(a, NULL, config, e);
    if (a->check && rc == 0) {
        return check_files(config, e);
    }
    if (a->check || rc == 0) {
        return rc;
    }
    if (!accepted_root(root) || read_all(a, root, config, &ignored) != 0) {
        return rc;
    }
    (void)snprintf(a->settings_bad, sizeof a->settings_bad, "%s", e->text);
    log_say(LOG_SETTINGS_BAD, "%s; the last accepted settings apply (%s)", e->text, root);
    return 0;
}

static void on_end_signal(uv_signal_t *handle, int number)
{
    struct front *f = handle->data;
    log_say(LOG_ENDING, "signal %d", number);
    pipeline_drain(f);
}

static void on_hand_over_signal(uv_signal_t *handle, int number)
{
    (void)number;
    pipeline_hand_over(handle->data);
}

static void on_reload_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct err e = ERR_INIT;
    if (reload_settings(handle->data, NULL, &e) != 0) { /* a reading logs its own errors */
        log_say(LOG_SETTINGS_BAD, "%s", e.text);
    }
}

/* A request to read the settings, or to hand over, that comes before the loop can take it would end
 * the process. It waits instead. */
static void mask_requests(int how)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigprocmask(how, &set, NULL);
}

static void init_signals(struct front *f)
{
    struct {
        uv_signal_t *handle;
        int number;
        uv_signal_cb callback;
    } signals[] = {{&f->sigterm, SIGTERM, on_end_signal},
                   {&f->sigint, SIGINT, on_end_signal},
                   {&f->sighup, SIGHUP, on_reload_signal},
                   {&f->sigusr1, SIGUSR1, on_hand_over_signal}};
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)uv_signal_init(f->loop, signals[i].handle);
        signals[i].handle->data = f;
        (void)uv_signal_start(signals[i].handle, signals[i].callback, signals[i].number);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    mask_requests(SIG_UNBLOCK);
}

/* Clients of this host need none of the files for other hosts, so a bad one does not end the
 * start. */
static void read_files(struct front *f, const struct config *config, struct tenant_rules *rules)
{
    struct err e = ERR_INIT;
    if (remote_files_read(config, rules, &f->tls, &e) != 0) {
        (void)snprintf(f->files_bad, sizeof f->files_bad, "%s", e.text);
        log_say(LOG_SETTINGS_BAD, "%s", e.text);
    }
}

static int init_front(struct front *f, uv_loop_t *loop, const struct config *config,
                      struct arguments *a, struct err *e)
{
    /* A later start has a greater generation, so handles of earlier starts are stale and match
     * nothing. */
    uint64_t generation = idmap_generation_at(clock_wall_ns());
    pipeline_io(f);
    f->loop = loop;
    f->config = *config;
    (void)snprintf(f->settings_bad, sizeof f->settings_bad, "%s", a->settings_bad);
    f->build = GPUD_BUILD;
    f->started_ns = front_now(f);
    f->next_session = 1;
    f->next_worker = 1;
    f->next_job = 1;
    f->supervised = a->supervised;
    f->record_file = a->record;
    f->record_file_data = a->record_data;
    f->read_settings = read_settings;
    f->settings_data = a;
    idmap_init(&f->buffers, IDMAP_MAX, generation);
    idmap_init(&f->arenas, 65536, generation);
    idmap_init(&f->programs, 65536, generation);
    idmap_init(&f->modules, 16384, generation);
    idmap_init(&f->kernels, 65536, generation);
    struct idmap *const maps[] = {&f->buffers, &f->arenas, &f->programs, &f->modules, &f->kernels};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        maps[i]->walked = &f->work.done; /* a walk through a map counts as work of the turn */
    }
    if (getrandom(f->daemon_id, sizeof f->daemon_id, 0) != (ssize_t)sizeof f->daemon_id) {
        return err_errno(e, ERR_IO, "random bytes");
    }
    struct tenant_rules rules;
    char state[CONFIG_PATH];
    int rc =
        accounts_create(config->runtime_dir, accepted_state(state) ? state : NULL, &f->accounts, e);
    rc = rc == 0 ? rights_read(config, &f->rights, e) : rc;
    rc = rc == 0 ? tenant_rules_read(config, &rules, e) : rc;
    if (rc != 0) {
        return rc;
    }
    read_files(f, config, &rules);
    return quota_rules(f, &rules, f->config.device_memory_max, e);
}

static int run(const struct config *config, struct arguments *a)
{
    uv_loop_t loop;
    struct err e = ERR_INIT;
    struct front *f = calloc(1, sizeof *f);
    if (f == NULL || uv_loop_init(&loop) != 0) {
        free(f);
        log_say(LOG_START_FAILED, "out of memory");
        log_end();
        return EXIT_FAILURE;
    }
    int lock = -1;
    int rc = runtime_lock(config->runtime_dir, "gpud.lock", "gpud", &lock, &e);
    if (rc == 0) {
        rc = init_front(f, &loop, config, a, &e);
    }
    if (rc == 0) {
        init_signals(f);
        rc = pipeline_start(f, &e);
        if (rc != 0) {
            f->exit_code = EXIT_FAILURE;
            pipeline_stop(f);
        }
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        pipeline_finish(f);
    }
    if (rc != 0) {
        log_say(LOG_START_FAILED, "%s", e.text);
        f->exit_code = EXIT_FAILURE;
    }
    int status = f->exit_code;
    free(f);
    if (lock >= 0) {
        (void)close(lock);
    }
    if (uv_loop_close(&loop) != 0) {
        log_say(LOG_MISTAKE, "the event loop still had open handles at the end");
        status = EXIT_FAILURE;
    }
    log_end();
    return status;
}

/* Keeps freed memory for the next jobs instead of returning it to the system at once. */
static void heap_prepare(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
    (void)mallopt(M_TOP_PAD, HEAP_STEP);
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_PIECE);
}

/* A person reads the result of a check; the reason of a start that fails is for the log. */
static int refuse(const struct arguments *a, const struct err *why)
{
    if (a->check) {
        (void)fprintf(stderr, "gpud: %s\n", why->text);
    } else {
        log_say(LOG_START_FAILED, "%s", why->text);
        log_end();
    }
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    struct err e = ERR_INIT;
    mask_requests(SIG_BLOCK);
    descriptors_standard();
    log_open("gpud", LOG_LEVEL_INFO);
    heap_prepare();
    int status = parse(&a, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (choose_settings(&a, &config, &e) != 0) {
        return refuse(&a, &e);
    }
    if (a.check) {
        (void)printf("settings are good: %s\n",
                     config.file[0] != '\0' ? config.file : CONFIG_SYSTEM_ROOT);
        return said();
    }
    if (a.settings_bad[0] == '\0' && accepted_keep(&config, &e) != 0) {
        log_say(LOG_SETTINGS_NOT_KEPT, "%s", e.text);
    }
    log_set_level(config.log_level);
    descriptors_init();
    log_say(LOG_RIGHTS,
            "root, the daemon's user%s%s and tenants with load_kernels = yes may load kernels, in "
            "workers of their own unless they are trusted",
            config.load_group[0] != '\0' ? ", group " : "", config.load_group);
    return run(&config, &a);
}

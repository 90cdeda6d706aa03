#include "daemon/front/settings/config.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "daemon/front/settings/listener_url.h"
#include "daemon/front/settings/secret_file.h"

#define REQUESTS_LEAST 1024u
#define MIB            (UINT64_C(1024) * 1024)
#define GIB            (UINT64_C(1024) * MIB)
#define TIB            (UINT64_C(1024) * GIB)
#define DAY_MS         (UINT64_C(24) * 3600 * 1000)

enum setting_type {
    SETTING_NUMBER, /* plain */
    SETTING_BYTES,  /* K, M, G or T (powers of 1024) may follow */
    SETTING_TEXT,
    SETTING_PATH, /* absolute */
    SETTING_FILE, /* an absolute path, a credential's name, or empty */
    SETTING_BACKEND,
    SETTING_LOOK,
    SETTING_COMPILER, /* the compiler of CUDA C */
    SETTING_GROUP,    /* a group of the system, or empty */
    SETTING_DEVICES,
    SETTING_LEVEL,
    SETTING_ACCESS, /* off, journal, or an absolute path */
    SETTING_LISTEN,
    SETTING_METRICS, /* addresses for metrics, or empty */
};

/* When a changed value counts: at once after a reload, or from the next start on. */
enum setting_use { START, LIVE };

struct setting {
    enum setting_use use;
    const char *section;
    const char *key;
    enum setting_type type;
    uint16_t offset; /* in struct config */
    uint16_t size;   /* of a text's member, bytes */
    uint64_t min;
    uint64_t max;
    uint64_t initial;
    const char *initial_text;
};

#define TEXT(use, section, key, type, initial)                                                     \
    {                                                                                              \
        use, section, #key, type, offsetof(struct config, key), sizeof((struct config *)0)->key,   \
            0, UINT64_MAX, 0, initial                                                              \
    }
#define NUMBER(use, section, name, key, min, max, initial)                                         \
    {                                                                                              \
        use, section, name, SETTING_NUMBER, offsetof(struct config, key), 0, min, max, initial,    \
            NULL                                                                                   \
    }
#define BYTES(use, section, name, key, min, max, initial)                                          \
    {                                                                                              \
        use, section, name, SETTING_BYTES, offsetof(struct config, key), 0, min, max, initial,     \
            NULL                                                                                   \
    }

/* In the order of the table `config`. */
static const struct setting settings[] = {
    {START, "daemon", "listen", SETTING_LISTEN, 0, 0, 0, 0, 0, NULL},
    TEXT(LIVE, "daemon", tls_cert, SETTING_FILE, ""),
    TEXT(LIVE, "daemon", tls_key, SETTING_FILE, ""),
    TEXT(LIVE, "daemon", tls_client_ca, SETTING_FILE, ""),
    TEXT(START, "daemon", runtime_dir, SETTING_PATH, "/run/gpud"),
    TEXT(START, "daemon", cache_dir, SETTING_PATH, "/var/cache/gpud"),
    TEXT(START, "daemon", backend, SETTING_BACKEND, "auto"),
    TEXT(START, "daemon", backend_options, SETTING_TEXT, ""),
    TEXT(START, "daemon", devices, SETTING_DEVICES, ""),
    NUMBER(LIVE, "daemon", "min_devices", min_devices, 0, 64, 1),
    NUMBER(START, "daemon", "start_timeout_s", start_timeout_s, 1, 3600, 90),
    {LIVE, "daemon", "log_level", SETTING_LEVEL, offsetof(struct config, log_level), 0, 0, 0,
     LOG_LEVEL_INFO, NULL},
    TEXT(LIVE, "daemon", admin_group, SETTING_GROUP, ""),
    TEXT(LIVE, "daemon", look, SETTING_LOOK, "own"),
    NUMBER(START, "daemon", "connections_max", connections_max, 1, 65536, 1024),
    NUMBER(START, "daemon", "handshake_timeout_ms", handshake_timeout_ms, 10, 600000, 5000),
    NUMBER(LIVE, "daemon", "prepared_workers", prepared_workers, 0, 1, 1),
    TEXT(LIVE, "log", access, SETTING_ACCESS, "off"),
    BYTES(LIVE, "record", "file_bytes", record_bytes, 64 * 1024, 64 * TIB, 256 * MIB),
    {LIVE, "metrics", "listen", SETTING_METRICS, offsetof(struct config, metrics_listen),
     sizeof((struct config *)0)->metrics_listen, 0, UINT64_MAX, 0, ""},
    TEXT(LIVE, "tenants", load_group, SETTING_GROUP, ""),
    BYTES(LIVE, "tenants", "arena_bytes_max", tenant_arena_bytes, 0, 64 * TIB, 8 * GIB),
    NUMBER(LIVE, "tenants", "buffers_max", tenant_buffers_max, 1, 16777216, 262144),
    NUMBER(LIVE, "tenants", "jobs_max", tenant_jobs_max, 0, 1000000, 0),
    NUMBER(LIVE, "tenants", "opens_max", tenant_opens_max, 1, 16777216, 262144),
    NUMBER(LIVE, "tenants", "programs_max", tenant_programs_max, 1, 65536, 16384),
    NUMBER(LIVE, "tenants", "modules_max", tenant_modules_max, 1, 16384, 4096),
    NUMBER(LIVE, "tenants", "arenas_max", tenant_arenas_max, 0, 65536, 1024),
    NUMBER(LIVE, "tenants", "kernels_max", tenant_kernels_max, 1, 65536, 16384),
    NUMBER(LIVE, "tenants", "notices_max", tenant_notices_max, 1, 16777216, 65536),
    BYTES(LIVE, "tenants", "message_bytes_max", tenant_message_bytes, MIB, 64 * TIB, GIB),
    NUMBER(LIVE, "jobs", "sessions_max", sessions_max, 1, 65536, 256),
    NUMBER(LIVE, "jobs", "user_sessions_max", user_sessions_max, 0, 65536, 0),
    NUMBER(LIVE, "jobs", "queue_max", queue_max, 1, 1000000, 4096),
    NUMBER(LIVE, "jobs", "session_inflight_max", session_inflight_max, 1, 65536, 256),
    NUMBER(LIVE, "jobs", "time_limit_ms", time_limit_ms, 1, DAY_MS, 30000),
    NUMBER(LIVE, "jobs", "window", window, 0, 256, 0),
    NUMBER(LIVE, "jobs", "batch_percent", batch_percent, 0, 50, 5),
    NUMBER(LIVE, "jobs", "coalesce_window_us", coalesce_window_us, 0, 10000, 0),
    BYTES(LIVE, "jobs", "keep_results_bytes", keep_results_bytes, 0, 64 * GIB, 64 * MIB),
    NUMBER(START, "jobs", "ring_spin_us", ring_spin_us, 0, 10000, 20),
    NUMBER(LIVE, "jobs", "session_linger_ms", session_linger_ms, 0, DAY_MS, 10000),
    NUMBER(LIVE, "jobs", "buffers_max", buffers_max, 1, 16777216, 65536),
    NUMBER(LIVE, "jobs", "arenas_max", arenas_max, 0, 4096, 64),
    BYTES(LIVE, "jobs", "arena_bytes_max", session_arena_bytes, 0, TIB, 2 * GIB),
    BYTES(LIVE, "jobs", "device_memory_max", device_memory_max, 0, 1024 * TIB, 0),
    BYTES(LIVE, "memory", "spill_limit", spill_limit, 0, 1024 * TIB, 0),
    NUMBER(LIVE, "memory", "recall_ms", recall_ms, 0, DAY_MS, 10000),
    NUMBER(LIVE, "memory", "stay_percent", stay_percent, 0, 100, 25),
    BYTES(START, "memory", "managed_limit", managed_limit, 0, 1024 * TIB, 0),
    NUMBER(LIVE, "domains", "per_device_max", domains_max, 0, 64, 8),
    NUMBER(LIVE, "domains", "memory_percent", domain_percent, 1, 90, 10),
    NUMBER(LIVE, "domains", "idle_s", domain_idle_s, 0, 86400, 300),
    NUMBER(LIVE, "domains", "place_s", domain_place_s, 1, 86400, 10),
    NUMBER(LIVE, "domains", "spare", domain_spare, 0, 1, 0),
    NUMBER(LIVE, "domains", "turn_overrun_ms", turn_overrun_ms, 1, DAY_MS, 1000),
    TEXT(LIVE, "domains", mps_devices, SETTING_DEVICES, ""),
    BYTES(LIVE, "domains", "host_memory_max", domain_host_bytes, 0, 1024 * TIB, 0),
    BYTES(START, "staging", "input_bytes", staging_input_bytes, MIB, 64 * GIB, 256 * MIB),
    BYTES(START, "staging", "output_bytes", staging_output_bytes, MIB, 64 * GIB, 256 * MIB),
    NUMBER(START, "compile", "wall_ms", compile_wall_ms, 10, DAY_MS, 120000),
    NUMBER(START, "compile", "cpu_s", compile_cpu_s, 1, 86400, 60),
    {START, "compile", "cuda", SETTING_COMPILER, offsetof(struct config, compile_cuda),
     sizeof((struct config *)0)->compile_cuda, 0, UINT64_MAX, 0, "auto"},
    BYTES(START, "compile", "memory_bytes", compile_memory_bytes, 64 * MIB, TIB, 4 * GIB),
};
#define SETTINGS (sizeof settings / sizeof settings[0])

static void *at(struct config *config, const struct setting *s)
{
    return (char *)config + s->offset;
}

static const void *at_const(const struct config *config, const struct setting *s)
{
    return (const char *)config + s->offset;
}

static bool is_number(const struct setting *s)
{
    return s->type == SETTING_NUMBER || s->type == SETTING_BYTES;
}

void config_defaults(struct config *ret_config)
{
    struct config config = {0};
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        if (is_number(s)) {
            memcpy(at(&config, s), &s->initial, sizeof s->initial);
        } else if (s->type == SETTING_LEVEL) {
            config.log_level = (int)s->initial;
        } else if (s->initial_text != NULL) {
            (void)snprintf(at(&config, s), s->size, "%s", s->initial_text);
        }
    }
    (void)snprintf(config.root, sizeof config.root, "%s", CONFIG_SYSTEM_ROOT);
    *ret_config = config;
}

static const struct setting *find(const char *section, size_t length, const char *key)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strlen(settings[i].section) == length &&
            strncmp(settings[i].section, section, length) == 0 &&
            strcmp(settings[i].key, key) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

uint64_t config_requests_max(const struct config *config)
{
    uint64_t all = config->session_inflight_max + REQUESTS_SPARE;
    return all > REQUESTS_LEAST ? all : REQUESTS_LEAST;
}

bool config_section(const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strcmp(settings[i].section, name) == 0) {
            return true;
        }
    }
    return false;
}

static uint64_t unit_of(char letter)
{
    switch (toupper((unsigned char)letter)) {
    case 'K':
        return UINT64_C(1024);
    case 'M':
        return MIB;
    case 'G':
        return GIB;
    case 'T':
        return TIB;
    default:
        return 0;
    }
}

int config_number(const char *key, const char *value, bool units, uint64_t *ret_number,
                  struct err *e)
{
    char *end = NULL;
    uint64_t number = 0;
    uint64_t unit = 1;
    errno = 0;
    if (isdigit((unsigned char)value[0])) {
        number = strtoull(value, &end, 10);
    }
    if (units && end != NULL && end[0] != '\0') {
        unit = unit_of(end[0]);
        end += unit != 0 ? 1 : 0;
    }
    if (end == NULL || errno != 0 || unit == 0 || end[0] != '\0') {
        return err_set(e, ERR_INVALID, "%s = %s: not a number%s", key, value,
                       units ? " with K, M, G or T at most" : "");
    }
    *ret_number = number > UINT64_MAX / unit ? UINT64_MAX : number * unit;
    return 0;
}

static int set_number(const struct setting *s, const char *value, void *out, struct err *e)
{
    uint64_t number = 0;
    int rc = config_number(s->key, value, s->type == SETTING_BYTES, &number, e);
    if (rc != 0) {
        return rc;
    }
    if (number < s->min || number > s->max) {
        return err_set(e, ERR_RANGE, "%s = %s: not within %" PRIu64 " and %" PRIu64, s->key, value,
                       s->min, s->max);
    }
    memcpy(out, &number, sizeof number);
    return 0;
}

static int set_text(const struct setting *s, const char *value, char *out, struct err *e)
{
    if (strlen(value) >= s->size) {
        return err_set(e, ERR_LIMIT, "%s: longer than %u bytes", s->key, s->size - 1u);
    }
    for (const char *c = value; *c != '\0'; c++) {
        if (iscntrl((unsigned char)*c)) {
            return err_set(e, ERR_INVALID, "%s: control characters or several lines", s->key);
        }
    }
    (void)snprintf(out, s->size, "%s", value);
    return 0;
}

static int set_path(const struct setting *s, const char *value, char *out, struct err *e)
{
    if (value[0] != '/') {
        return err_set(e, ERR_INVALID, "%s = %s: not an absolute path", s->key, value);
    }
    return set_text(s, value, out, e);
}

static int set_file(const struct setting *s, const char *value, char *out, struct err *e)
{
    int rc = value[0] != '\0' ? secret_file_name(s->key, value, e) : 0;
    return rc == 0 ? set_text(s, value, out, e) : rc;
}

/* Accepts one of the words of a list with ", " between them. */
static int set_word(const struct setting *s, const char *value, char *out, struct err *e)
{
    const char *words = s->type == SETTING_BACKEND    ? "auto, cuda, opencl, sim"
                        : s->type == SETTING_COMPILER ? "auto, nvrtc, nvcc"
                                                      : "own, all";
    size_t length = strlen(value);
    for (const char *word = words; *word != '\0';) {
        size_t n = strcspn(word, ",");
        if (n == length && strncmp(word, value, n) == 0) {
            return set_text(s, value, out, e);
        }
        word += n;
        word += strspn(word, ", ");
    }
    return err_set(e, ERR_INVALID, "%s = %s: not one of %s", s->key, value, words);
}

static int set_access(const struct setting *s, const char *value, char *out, struct err *e)
{
    if (value[0] == '/' || strcmp(value, "off") == 0 || strcmp(value, "journal") == 0) {
        return set_text(s, value, out, e);
    }
    return err_set(e, ERR_INVALID, "%s = %s: not off, journal or an absolute path", s->key, value);
}

static int set_group(const struct setting *s, const char *value, char *out, struct err *e)
{
    if (value[0] != '\0' && getgrnam(value) == NULL) {
        return err_set(e, ERR_NOT_FOUND, "%s = %s: there is no such group", s->key, value);
    }
    return set_text(s, value, out, e);
}

static int set_metrics(const struct setting *s, const char *value, char *out, struct err *e)
{
    struct metrics_addresses addresses;
    int rc = metrics_addresses_parse(value, &addresses, e);
    return rc == 0 ? set_text(s, value, out, e) : rc;
}

/* Accepts indices below 64 with commas between them. */
static int set_devices(const struct setting *s, const char *value, char *out, struct err *e)
{
    const char *c = value;
    while (*c != '\0') {
        char *end = NULL;
        unsigned long index = isdigit((unsigned char)*c) ? strtoul(c, &end, 10) : 64;
        if (index >= 64 || (*end != '\0' && (*end != ',' || end[1] == '\0'))) {
            return err_set(e, ERR_INVALID, "%s = %s: not a list like 0,2 of indices below 64",
                           s->key, value);
        }
        c = *end == ',' ? end + 1 : end;
    }
    return set_text(s, value, out, e);
}

static int set_level(const struct setting *s, const char *value, int *out, struct err *e)
{
    int level = log_level_from_name(value);
    if (level < 0) {
        return err_set(e, ERR_INVALID, "%s = %s: not one of error, warn, info, debug", s->key,
                       value);
    }
    *out = level;
    return 0;
}

static int add_listen(struct config *config, const char *url, size_t length, struct err *e)
{
    if (config->listen_count == CONFIG_LISTEN_MAX) {
        return err_set(e, ERR_LIMIT, "listen: over %d addresses", CONFIG_LISTEN_MAX);
    }
    if (length >= sizeof config->listen[0]) {
        return err_set(e, ERR_LIMIT, "listen: longer than %zu bytes", sizeof config->listen[0] - 1);
    }
    char *text = config->listen[config->listen_count];
    char checked[LISTEN_URL_MAX];
    enum listen_kind kind = LISTEN_IPC;
    (void)snprintf(text, sizeof config->listen[0], "%.*s", (int)length, url);
    if (listen_url(text, checked, &kind, e) != 0) {
        return err_wrap(e, "listen");
    }
    config->listen_tls = config->listen_tls || kind == LISTEN_TLS;
    config->listen_count++;
    return 0;
}

/* A list of addresses with commas, spaces or newlines between them. It replaces the former list. */
static int set_listen(struct config *config, const char *value, struct err *e)
{
    static const char separators[] = ", \t\n";
    struct config changed = *config;
    changed.listen_count = 0;
    changed.listen_tls = false;
    memset(changed.listen, 0, sizeof changed.listen);
    for (const char *c = value + strspn(value, separators); *c != '\0';) {
        size_t length = strcspn(c, separators);
        int rc = add_listen(&changed, c, length, e);
        if (rc != 0) {
            return rc;
        }
        c += length;
        c += strspn(c, separators);
    }
    *config = changed;
    return 0;
}

int config_set(struct config *config, const char *key, const char *value, struct err *e)
{
    const char *dot = strchr(key, '.');
    const struct setting *s = dot == NULL ? NULL : find(key, (size_t)(dot - key), dot + 1);
    if (s == NULL) {
        return err_set(e, ERR_NOT_FOUND, "unknown setting %s", key);
    }
    switch (s->type) {
    case SETTING_NUMBER:
    case SETTING_BYTES:
        return set_number(s, value, at(config, s), e);
    case SETTING_TEXT:
        return set_text(s, value, at(config, s), e);
    case SETTING_PATH:
        return set_path(s, value, at(config, s), e);
    case SETTING_FILE:
        return set_file(s, value, at(config, s), e);
    case SETTING_BACKEND:
    case SETTING_COMPILER:
    case SETTING_LOOK:
        return set_word(s, value, at(config, s), e);
    case SETTING_GROUP:
        return set_group(s, value, at(config, s), e);
    case SETTING_DEVICES:
        return set_devices(s, value, at(config, s), e);
    case SETTING_LEVEL:
        return set_level(s, value, at(config, s), e);
    case SETTING_ACCESS:
        return set_access(s, value, at(config, s), e);
    case SETTING_LISTEN:
        return set_listen(config, value, e);
    case SETTING_METRICS:
        return set_metrics(s, value, at(config, s), e);
    }
    return err_set(e, ERR_INTERNAL, "%s: no such type", key);
}

/* min_devices must not ask for more devices than `devices` names, because no others ever serve. */
static int check_devices(const struct config *config, struct err *e)
{
    uint64_t named = 0; /* a bit for each index */
    for (const char *c = config->devices; *c != '\0';) {
        char *end = NULL;
        named |= UINT64_C(1) << (strtoul(c, &end, 10) & 63u);
        c = *end == ',' ? end + 1 : end;
    }
    unsigned count = (unsigned)__builtin_popcountll(named);
    return count == 0 || config->min_devices <= count
               ? 0
               : err_set(e, ERR_RANGE,
                         "min_devices = %" PRIu64
                         ": more than the devices in devices = %s, so gpud would never be ready",
                         config->min_devices, config->devices);
}

static int check_tls(const struct config *config, struct err *e)
{
    bool cert = config->tls_cert[0] != '\0';
    bool key = config->tls_key[0] != '\0';
    if (config->listen_tls && !(cert && key)) {
        return err_set(e, ERR_INVALID, "listen = tls+tcp://…: %s is not set",
                       cert ? "tls_key" : "tls_cert");
    }
    return 0;
}

int config_complete(struct config *config, struct err *e)
{
    int rc = check_devices(config, e);
    rc = rc == 0 ? check_tls(config, e) : rc;
    if (rc != 0 || config->listen_count > 0) {
        return rc;
    }
    char url[CONFIG_PATH + 32];
    int n = snprintf(url, sizeof url, "ipc://%s/gpud.sock", config->runtime_dir);
    return n < 0 ? err_set(e, ERR_INTERNAL, "a socket's name")
                 : add_listen(config, url, (size_t)n, e);
}

static void listen_text(const struct config *config, char *out, unsigned size)
{
    unsigned used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < config->listen_count && used < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i > 0 ? "," : "", config->listen[i]);
        used += n > 0 ? (unsigned)n : 0;
    }
}

bool config_at(const struct config *config, unsigned index, const char **ret_section,
               const char **ret_key, char *ret_value, unsigned size)
{
    if (index >= SETTINGS) {
        return false;
    }
    const struct setting *s = &settings[index];
    const void *value = at_const(config, s);
    if (is_number(s)) {
        uint64_t number;
        memcpy(&number, value, sizeof number);
        (void)snprintf(ret_value, size, "%" PRIu64, number);
    } else if (s->type == SETTING_LEVEL) {
        (void)snprintf(ret_value, size, "%s", log_level_name(config->log_level));
    } else if (s->type == SETTING_LISTEN) {
        listen_text(config, ret_value, size);
    } else {
        (void)snprintf(ret_value, size, "%s", (const char *)value);
    }
    *ret_section = s->section;
    *ret_key = s->key;
    return true;
}

/* ---- settings that change while the daemon runs --------------------------------------------- */

static void copy_value(struct config *config, const struct config *fresh, const struct setting *s)
{
    size_t size = is_number(s) ? sizeof(uint64_t) : s->size;
    size = s->type == SETTING_LEVEL ? sizeof config->log_level : size;
    memcpy(at(config, s), at_const(fresh, s), size);
}

void config_take_live(struct config *config, const struct config *fresh, char *ret_waiting,
                      unsigned size)
{
    unsigned used = 0;
    ret_waiting[0] = '\0';
    for (unsigned i = 0; i < SETTINGS; i++) {
        char was[2048];
        char is[2048];
        char name[128];
        const char *section = NULL;
        const char *key = NULL;
        (void)config_at(config, i, &section, &key, was, sizeof was);
        (void)config_at(fresh, i, &section, &key, is, sizeof is);
        (void)snprintf(name, sizeof name, "%s.%s", section, key);
        if (settings[i].use == LIVE) {
            copy_value(config, fresh, &settings[i]);
        } else if (strcmp(was, is) != 0 && used < size) {
            int n = snprintf(ret_waiting + used, size - used, "%s%s", used > 0 ? " " : "", name);
            used += n > 0 ? (unsigned)n : 0;
        }
    }
}

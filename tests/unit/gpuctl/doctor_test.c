/* Each check of `gpuctl doctor`: a host where all is well, and what it says when something breaks.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuctl/doctor/doctor.h"
#include "tests/unit/common/suite.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"
#define GPU "/proc/driver/nvidia/gpus/0000:01:00.0/information"

static char root[64];
static char url[128];
static int listener = -1;
static struct host host;
static struct doctor doctor;

#define CHANGES_MAX 16u

/* Files that a breakage replaced or removed; what was there is in the folder "kept". */
static struct change {
    char path[128];
} changes[CHANGES_MAX];
static unsigned change_count;
static bool made; /* the good host is there: what follows is a change */

static const char *at(const char *path)
{
    static char full[PATH_MAX];
    return host_path(&host, full, "%s", path);
}

/* Makes the folders of a path below the root. */
static void folders(const char *path)
{
    char full[PATH_MAX];
    host_path(&host, full, "%s", path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
}

static const char *kept(unsigned index)
{
    static char full[PATH_MAX];
    return host_path(&host, full, "/kept/%u", index);
}

/* Puts the file aside until `undo`. */
static void set_aside(const char *path)
{
    if (made) {
        ck_assert_uint_lt(change_count, CHANGES_MAX);
        (void)snprintf(changes[change_count].path, sizeof changes[0].path, "%s", path);
        (void)rename(at(path), kept(change_count));
        change_count++;
    }
}

static void undo(void)
{
    while (change_count > 0) {
        change_count--;
        (void)remove(at(changes[change_count].path));
        (void)rename(kept(change_count), at(changes[change_count].path));
    }
}

static void put(const char *path, const char *text)
{
    folders(path);
    set_aside(path);
    FILE *f = fopen(at(path), "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(at(path), 0666), 0);
}

static void put_link(const char *path, const char *target)
{
    folders(path);
    set_aside(path);
    ck_assert_int_eq(symlink(target, at(path)), 0);
}

static void drop(const char *path)
{
    ck_assert_msg(access(at(path), F_OK) == 0, "%s", path);
    set_aside(path);
}

/* A program that prints these lines and ends with this status. */
static void program(const char *name, const char *body)
{
    char path[128];
    char text[256];
    (void)snprintf(path, sizeof path, "/bin/%s", name);
    (void)snprintf(text, sizeof text, "#!/bin/sh\n%s\n", body);
    put(path, text);
    ck_assert_int_eq(chmod(at(path), 0755), 0);
}

static void library(const char *name, const char *file)
{
    char path[128];
    (void)snprintf(path, sizeof path, LIB "%s", file);
    put(path, "");
    if (strcmp(name, file) != 0) {
        (void)snprintf(path, sizeof path, LIB "%s", name);
        put_link(path, file);
    }
}

static void make_system(void)
{
    put("/etc/systemd/system/gpud.service", "");
    put("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\ngpud:x:900:900::/:/bin/false\n"
                       "gpud-worker:x:901:901::/:/bin/false\n"
                       "gpud-worker0:x:902:901::/:/bin/false\n");
    put("/etc/group", "root:x:0:\nvideo:x:44:gpud,gpud-worker,gpud-worker0\ngpud:x:900:alice\n");
    put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    put("/kept/x", "");
    put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  "
                                       "Sun Jul 27\nGCC version: 12.2\n");
    put(GPU, "Model: \t\t H100\nDevice Minor: \t 0\n");
    put("/proc/sys/kernel/osrelease", "6.1.0-31-amd64\n");
    put("/proc/sys/kernel/seccomp/actions_avail", "kill\n");
    put("/dev/nvidiactl", "");
    put("/dev/nvidia-uvm", "");
    put("/dev/nvidia0", "");
    put("/var/cache/gpud/x", "");
    put("/var/cache/gpud-worker/x", "");
    put("/usr/bin/ld", "");
    put("/usr/bin/gcc", "");
}

static void make_libraries(void)
{
    library("libcuda.so.1", "libcuda.so.580.65.06");
    library("libnng.so.1", "libnng.so.1.5.2");
    library("libOpenCL.so.1", "libOpenCL.so.1");
    library("libpocl.so.2", "libpocl.so.2.10.0");
    put(LIB "libpocl.so.2.10.0", "OpenCL 3.0 PoCL\nx OpenCL 3.0 PoCL 3.1+debian Linux");
    put("/etc/OpenCL/vendors/pocl.icd", "libpocl.so.2\n");
    library("libnvrtc.so.13", "libnvrtc.so.13.0.48");
    library("libnvidia-ml.so.1", "libnvidia-ml.so.1");
    library("libcublas.so.13", "libcublas.so.13");
    library("libcufft.so.12", "libcufft.so.12");
    library("libcurand.so.10", "libcurand.so.10");
}

static void make_programs(void)
{
    static const char *const names[] = {"gpud-launcher", "gpud-worker", "gpud-compile",
                                        "gpud-monitor"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        program(names[i], "echo $(basename $0) 1+ab");
    }
    program("gpud",
            "if [ $1 = --version ]; then echo 'gpud 1 (build 1+ab)'; else echo settings are "
            "good; fi");
    program("nvidia-smi", "echo '0, 0, 0x0000000000000001'");
}

static void make_process(int pid, const char *unit)
{
    char path[128];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/limits", pid);
    put(path, "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max open files            65536                65536                files     \n"
              "Max locked memory         unlimited            unlimited            bytes     \n");
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    (void)snprintf(text, sizeof text, "1:name=systemd:/\n0::/system.slice/%s.service\n", unit);
    put(path, text);
    static const char *const values[][2] = {{"memory.max", "8589934592\n"},
                                            {"memory.current", "104857600\n"},
                                            {"memory.events", "low 0\nmax 0\noom 0\noom_kill 0\n"},
                                            {"pids.max", "512\n"},
                                            {"pids.current", "20\n"}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/system.slice/%s.service/%s", unit,
                       values[i][0]);
        put(path, values[i][1]);
    }
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    return fd;
}

static void make_facts(void)
{
    struct facts *f = &doctor.facts;
    *f = (struct facts){.reached = true,
                        .listening = true,
                        .pid = 77,
                        .build = "1+ab",
                        .state = "ready",
                        .cache_dir = "/var/cache/gpud",
                        .connections_max = 1024,
                        .device_count = 1};
    f->device[0] = (struct facts_device){
        .worker = 78, .backend = "cuda", .state = "ready", .throttled = "no", .recovery = "none"};
}

/* What is not in files: the caller, the daemon. */
static void make_host(void)
{
    host = (struct host){.root = root,
                         .url = url,
                         .search = "/bin:/usr/bin",
                         .libraries = "",
                         .cuda = "",
                         .caller = {.uid = 1000, .groups = {1000, 900}, .group_count = 2},
                         .landlock = 4,
                         .timeout_ms = 10000,
                         .descriptors = 20000,
                         .memlock = UINT64_MAX};
    doctor = (struct doctor){.host = &host};
    host_path(&host, host.programs, "/bin");
    make_facts();
    if (listener >= 0) {
        (void)close(listener);
    }
    (void)unlink(url + strlen("ipc://"));
    listener = listen_at(url + strlen("ipc://"));
}

/* A host with a GPU of NVIDIA, units of systemd and a daemon, where all is well. */
static void setup(void)
{
    (void)snprintf(root, sizeof root, "/tmp/gpud-doctor.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(url, sizeof url, "ipc://%s/gpud.sock", root);
    made = false;
    make_host();
    make_system();
    make_libraries();
    make_programs();
    make_process(77, "gpud");
    make_process(78, "gpud-launcher");
    made = true;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void teardown(void)
{
    (void)close(listener);
    (void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static struct finding look(const char *name)
{
    struct finding f;
    const struct check *check = doctor_check_find(name);
    ck_assert_msg(check != NULL, "there is no check %s", name);
    doctor_look(&doctor, check, &f);
    return f;
}

/* ---- what can break ------------------------------------------------------------------------ */

static void no_module(void)
{
    drop("/proc/driver/nvidia/version");
}

static void no_libcuda(void)
{
    drop(LIB "libcuda.so.1");
}

static void old_module(void)
{
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.02  Sun\n");
}

static void open_module(void)
{
    put("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release\n");
    put("/proc/sys/kernel/osrelease", "6.1.24\n");
}

static void no_device_file(void)
{
    drop("/dev/nvidia0");
}

static void no_uvm_file(void)
{
    drop("/dev/nvidia-uvm");
}

/* The files belong to a stranger and to a group that is not the workers'. */
static void closed_device_file(void)
{
    put("/dev/nvidia0", "");
    ck_assert_int_eq(chmod(at("/dev/nvidia0"), 0600), 0);
}

static void closed_render_file(void)
{
    put("/dev/dri/renderD128", "");
    ck_assert_int_eq(chmod(at("/dev/dri/renderD128"), 0600), 0);
}

static void no_nvidia(void)
{
    drop("/sys/bus/pci/devices/0000:01:00.0/vendor");
    drop("/proc/driver/nvidia/gpus/0000:01:00.0");
}

static void no_opencl(void)
{
    no_nvidia();
    drop("/etc/OpenCL/vendors/pocl.icd");
}

static void icd_without_library(void)
{
    put("/etc/OpenCL/vendors/other.icd", "/opt/lib/libother.so\n");
}

static void no_worker_user(void)
{
    put("/etc/passwd", "gpud:x:900:900::/:/bin/false\ngpud-worker:x:901:901::/:/bin/false\n");
}

static void root_worker(void)
{
    put("/etc/passwd", "gpud:x:900:900::/:/x\ngpud-worker:x:0:0::/:/x\ngpud-worker0:x:3:3::/:/x\n");
}

static void no_member(void)
{
    host.caller.group_count = 1;
}

static void no_group(void)
{
    put("/etc/group", "root:x:0:\n");
}

static void bad_settings(void)
{
    program("gpud", "echo '/etc/gpud/gpud.conf:3: unknown key listn' >&2; exit 2");
}

static void no_gpud(void)
{
    drop("/bin/gpud");
}

static void endless_gpud(void)
{
    program("gpud", "exec sleep 100");
    host.timeout_ms = 100;
}

static void no_socket(void)
{
    ck_assert_int_eq(unlink(url + strlen("ipc://")), 0);
}

static void stale_socket(void)
{
    (void)close(listener);
    listener = -1;
}

/* No process accepts, and the queue of connections is full. */
static void full_socket(void)
{
    ck_assert_int_eq(listen(listener, 0), 0);
    (void)facts_connect(url + strlen("ipc://"), NULL);
}

static void no_answer(void)
{
    doctor.facts = (struct facts){.code = GPUD_ERR_CONNECT, .error = "Connection refused"};
}

static void hung_daemon(void)
{
    doctor.facts = (struct facts){.code = GPUD_ERR_TIMEOUT, .listening = true, .pid = 77};
}

static void hung_daemon_by_hand(void)
{
    hung_daemon();
    drop("/etc/systemd/system/gpud.service");
}

static void refused_user(void)
{
    doctor.facts = (struct facts){.code = GPUD_ERR_PERMISSION, .error = "no tenant"};
}

static void other_protocol(void)
{
    doctor.facts = (struct facts){.code = GPUD_ERR_VERSION, .error = "version 9"};
}

static void degraded_daemon(void)
{
    strcpy(doctor.facts.state, "degraded");
    strcpy(doctor.facts.problem, "device 0 is absent");
}

static void warned_daemon(void)
{
    strcpy(doctor.facts.warning, "tls_cert = /c.pem: the certificate expires at 2026-12-01");
}

static void unready_daemon(void)
{
    strcpy(doctor.facts.state, "not ready");
}

static void other_worker(void)
{
    program("gpud-worker", "echo gpud-worker 1+cd");
}

static void no_compiler(void)
{
    drop("/bin/gpud-compile");
}

static void broken_monitor(void)
{
    program("gpud-monitor", "echo 'libx.so.1: cannot open shared object file' >&2; exit 127");
}

static void former_daemon(void)
{
    strcpy(doctor.facts.build, "1+aa");
}

static void few_descriptors(void)
{
    put("/proc/77/limits",
        "Max open files            1024                 4096                 files\n");
}

static void few_descriptors_by_hand(void)
{
    no_answer();
    drop("/etc/systemd/system/gpud.service");
    host.descriptors = 1024;
}

static void little_memlock(void)
{
    put("/proc/78/limits",
        "Max locked memory         8388608              8388608              bytes\n");
}

static void killed_in_cgroup(void)
{
    put("/sys/fs/cgroup/system.slice/gpud-launcher.service/memory.events",
        "low 0\noom 3\noom_kill 3\n");
}

static void full_cgroup(void)
{
    put("/sys/fs/cgroup/system.slice/gpud.service/memory.current", "8300000000\n");
}

static void small_cgroup(void)
{
    put("/sys/fs/cgroup/system.slice/gpud.service/memory.max", "104857600\n");
    put("/sys/fs/cgroup/system.slice/gpud.service/memory.current", "1\n");
}

static void many_tasks(void)
{
    put("/sys/fs/cgroup/system.slice/gpud.service/pids.current", "500\n");
}

static void no_landlock(void)
{
    host.landlock = -1;
}

static void no_seccomp(void)
{
    drop("/proc/sys/kernel/seccomp");
}

static void full_disk(void)
{
    host.disk_low = UINT64_MAX;
}

static void no_cache(void)
{
    strcpy(doctor.facts.cache_dir, "/var/cache/nowhere");
}

static void no_linker(void)
{
    no_nvidia();
    drop("/usr/bin/ld");
}

static void no_nvrtc(void)
{
    drop(LIB "libnvrtc.so.13");
}

static void only_nvcc(void)
{
    no_nvrtc();
    put("/usr/local/cuda/bin/nvcc", "");
}

static void nvcc_without_gcc(void)
{
    put("/usr/local/cuda/bin/nvcc", "");
    drop("/usr/bin/gcc");
    host.search = "/nowhere";
}

static void older_driver(void)
{
    library("libcuda.so.1", "libcuda.so.570.1.02");
}

static void no_cufft(void)
{
    drop(LIB "libcufft.so.12");
}

static void no_nng(void)
{
    drop(LIB "libnng.so.1");
}

static void old_nng(void)
{
    library("libnng.so.1", "libnng.so.1.4.0");
}

static void strange_nng(void)
{
    library("libnng.so.1", "libnng.so.2.0.1");
}

static void old_pocl(void)
{
    put(LIB "libpocl.so.2.10.0", "OpenCL 2.0 PoCL 1.8 Linux");
}

static void ecc_errors(void)
{
    doctor.facts.device[0].ecc_errors = 2;
}

static void hot_device(void)
{
    strcpy(doctor.facts.device[0].throttled, "power cap, heat");
}

static void recovery_wanted(void)
{
    strcpy(doctor.facts.device[0].recovery, "drain and reset the GPU");
}

static void reboot_wanted(void)
{
    strcpy(doctor.facts.device[0].recovery, "reboot the host");
}

static void ecc_errors_without_daemon(void)
{
    no_answer();
    program("nvidia-smi", "echo '0, 0, 0x1'; echo '1, 7, 0x1'");
}

static void hot_device_without_daemon(void)
{
    no_answer();
    program("nvidia-smi", "echo '0, [N/A], 0x0000000000000040'");
}

static void hung_driver(void)
{
    no_answer();
    program("nvidia-smi", "exec sleep 100");
    host.timeout_ms = 100;
}

struct breakage {
    const char *check;
    void (*cause)(void);
    enum finding_state state;
    const char *reason, *mend; /* parts of the texts */
};

static const struct breakage breakages[] = {
    {"driver", no_module, FINDING_FAILURE, "module is not loaded", "modprobe nvidia"},
    {"driver", no_libcuda, FINDING_FAILURE, "libcuda.so.1 is missing", "libcuda1"},
    {"driver", old_module, FINDING_FAILURE, "module is 570.1.2, its library 580.65.6", "reboot"},
    {"kernel-memory", open_module, FINDING_WARNING, "HMM is on", "uvm_disable_hmm=1"},
    {"devices", no_device_file, FINDING_FAILURE, "/dev/nvidia0: No such", "gpud-nvidia"},
    {"devices", no_uvm_file, FINDING_FAILURE, "/dev/nvidia-uvm: No such", "gpud-nvidia"},
    {"devices", closed_device_file, FINDING_FAILURE, "gpud-worker0 may not open it", "adduser $u"},
    {"devices", closed_render_file, FINDING_WARNING, "renderD128", "adduser $u"},
    {"opencl", no_opencl, FINDING_FAILURE, "gpud has no device", "pocl-opencl-icd"},
    {"opencl", icd_without_library, FINDING_WARNING, "/opt/lib/libother.so", "apt-get"},
    {"users", no_worker_user, FINDING_FAILURE, "gpud-worker0 does not exist", "systemd-sysusers"},
    {"users", root_worker, FINDING_FAILURE, "gpud-worker is root", "systemd-sysusers"},
    {"group", no_member, FINDING_FAILURE, "(1000) is not in group gpud", "adduser $USER gpud"},
    {"group", no_group, FINDING_FAILURE, "group gpud, whose", "systemd-sysusers"},
    {"settings", bad_settings, FINDING_FAILURE, "gpud.conf:3: unknown key", "--check-config"},
    {"settings", no_gpud, FINDING_FAILURE, "gpud is not there", "apt-get install gpud"},
    {"settings", endless_gpud, FINDING_FAILURE, "did not end within 100 ms", "--check-config"},
    {"socket", no_socket, FINDING_FAILURE, "No such file", "systemctl start gpud"},
    {"socket", stale_socket, FINDING_FAILURE, "nothing listens", "systemctl restart gpud"},
    {"socket", full_socket, FINDING_FAILURE, "it hangs", "KILL"},
    {"daemon", no_answer, FINDING_FAILURE, "Connection refused", "systemctl start gpud"},
    {"daemon", hung_daemon, FINDING_FAILURE, "it hangs", "systemctl kill -s KILL gpud"},
    {"daemon", hung_daemon_by_hand, FINDING_FAILURE, "it hangs", "kill -KILL 77"},
    {"daemon", refused_user, FINDING_FAILURE, "refuses this user: no tenant", "journalctl"},
    {"daemon", other_protocol, FINDING_FAILURE, "another version: version 9", "upgrade"},
    {"daemon", degraded_daemon, FINDING_WARNING, "device 0 is absent", "gpuctl status"},
    {"daemon", warned_daemon, FINDING_WARNING, "/c.pem: the certificate expires", "gpuctl reload"},
    {"daemon", unready_daemon, FINDING_FAILURE, "not ready", "gpuctl status"},
    {"versions", other_worker, FINDING_FAILURE, "gpud-worker is 1+cd", "reinstall"},
    {"versions", no_compiler, FINDING_FAILURE, "gpud-compile is not there", "reinstall"},
    {"versions", broken_monitor, FINDING_FAILURE, "cannot open shared object", "reinstall"},
    {"versions", former_daemon, FINDING_WARNING, "runs is build 1+aa, installed is 1+ab",
     "restart gpud-launcher gpud"},
    {"descriptors", few_descriptors, FINDING_WARNING, "1024 descriptors", "LimitNOFILE"},
    {"descriptors", few_descriptors_by_hand, FINDING_WARNING, "1024 descriptors", "ulimit -n"},
    {"memlock", little_memlock, FINDING_WARNING, "8 MiB", "LimitMEMLOCK=infinity"},
    {"cgroup", killed_in_cgroup, FINDING_WARNING, "ended 3 process(es)", "gpud-launcher MemoryMax"},
    {"cgroup", full_cgroup, FINDING_WARNING, "of 8192 MiB", "gpud MemoryMax"},
    {"cgroup", small_cgroup, FINDING_WARNING, "of 100 MiB", "gpud MemoryMax"},
    {"cgroup", many_tasks, FINDING_WARNING, "500 of 512 tasks", "TasksMax=1024"},
    {"confinement", no_landlock, FINDING_WARNING, "no Landlock", "lsm=landlock"},
    {"confinement", no_seccomp, FINDING_WARNING, "no seccomp", "CONFIG_SECCOMP_FILTER"},
    {"cache", full_disk, FINDING_FAILURE, "MiB and", "df -h /var/cache/gpud"},
    {"cache", no_cache, FINDING_FAILURE, "/var/cache/nowhere: No such", "systemd-tmpfiles"},
    {"compilers", no_linker, FINDING_FAILURE, "/usr/bin/ld is missing", "binutils"},
    {"compilers", no_nvrtc, FINDING_FAILURE, "CUDA C does not compile", "libnvrtc"},
    {"compilers", only_nvcc, FINDING_WARNING, "NVRTC is missing", "libnvrtc"},
    {"compilers", nvcc_without_gcc, FINDING_WARNING, "gcc is not", "apt-get install gcc"},
    {"compilers", older_driver, FINDING_FAILURE, "from 580 on, this one is 570", "nvidia-driver"},
    {"libraries", no_cufft, FINDING_WARNING, "cuFFT", "libcufft"},
    {"nng", no_nng, FINDING_FAILURE, "gpud does not start", "libnng1"},
    {"nng", old_nng, FINDING_WARNING, "NNG 1.4.0", "libnng1"},
    {"nng", strange_nng, FINDING_WARNING, "NNG 2.0.1 is unknown", "libnng1"},
    {"pocl", old_pocl, FINDING_WARNING, "PoCL 1.8.0", "pocl-opencl-icd"},
    {"health", ecc_errors, FINDING_WARNING, "2 uncorrected ECC errors", "nvidia-smi -q -d ECC"},
    {"health", hot_device, FINDING_WARNING, "power cap, heat", "TEMPERATURE"},
    {"health", recovery_wanted, FINDING_FAILURE, "drain and reset", "nvidia-smi -r"},
    {"health", reboot_wanted, FINDING_FAILURE, "reboot the host", "then reboot"},
    {"health", ecc_errors_without_daemon, FINDING_WARNING, "device 1: 7 uncorrected", "ECC"},
    {"health", hot_device_without_daemon, FINDING_WARNING, "heat", "TEMPERATURE"},
    {"health", hung_driver, FINDING_FAILURE, "did not end within 100 ms", "dmesg"},
};
#define BREAKAGES (sizeof breakages / sizeof breakages[0])

START_TEST(a_good_host_has_no_findings)
{
    for (const struct check *c = doctor_checks; c->name != NULL; c++) {
        struct finding f = look(c->name);
        ck_assert_msg(f.state == FINDING_OK, "%s: %s: %s", c->name, finding_state_name(f.state),
                      f.reason);
        ck_assert_str_ne(f.reason, "");
        ck_assert_str_eq(f.mend, "");
    }
}
END_TEST

START_TEST(each_breakage_is_found)
{
    for (size_t i = 0; i < BREAKAGES; i++) {
        const struct breakage *b = &breakages[i];
        b->cause();
        struct finding f = look(b->check);
        ck_assert_msg(f.state == b->state && strstr(f.reason, b->reason) != NULL &&
                          strstr(f.mend, b->mend) != NULL && strchr(f.reason, '\n') == NULL,
                      "%zu: %s: %s: %s; mend: %s", i, b->check, finding_state_name(f.state),
                      f.reason, f.mend);
        undo();
        make_host();
    }
}
END_TEST

START_TEST(each_check_has_a_breakage)
{
    for (const struct check *c = doctor_checks; c->name != NULL; c++) {
        bool broken = false;
        for (size_t i = 0; i < BREAKAGES; i++) {
            broken = broken || strcmp(breakages[i].check, c->name) == 0;
        }
        ck_assert_msg(broken, "nothing breaks %s", c->name);
    }
}
END_TEST

/* The disks of /proc and /sys, where they are mounted so. */
START_TEST(disks_that_load_or_keep_nothing)
{
    static const struct {
        const char *disk, *folder, *reason, *mend;
        unsigned long flag;
    } rows[] = {{"/proc", "/var/cache/gpud-worker", "noexec", "remount,exec", ST_NOEXEC},
                {"/sys", "/var/cache/gpud", "read-only", "remount,rw", ST_RDONLY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct statvfs disk;
        if (statvfs(rows[i].disk, &disk) != 0 || (disk.f_flag & rows[i].flag) == 0) {
            continue;
        }
        put_link(rows[i].folder, rows[i].disk);
        struct finding f = look("cache");
        ck_assert_int_eq(f.state, FINDING_FAILURE);
        ck_assert_msg(strstr(f.reason, rows[i].reason) != NULL, "%s", f.reason);
        ck_assert_msg(strstr(f.mend, rows[i].mend) != NULL, "%s", f.mend);
        undo();
    }
}
END_TEST

/* A user without rights; root always has them. own: the daemon is root's own. */
static void check_closed_socket(bool own)
{
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(root, 0755), 0);
        ck_assert_int_eq(chown(url + strlen("ipc://"), 0, own ? 0 : 65533), 0);
        ck_assert_int_eq(chmod(url + strlen("ipc://"), 0600), 0);
        ck_assert_int_eq(seteuid(65534), 0);
    } else {
        ck_assert_int_eq(chmod(url + strlen("ipc://"), 0), 0);
    }
    struct finding f = look("socket");
    ck_assert_int_eq(f.state, FINDING_FAILURE);
    ck_assert_msg(strstr(f.reason, "this user (1000) may not connect") != NULL, "%s", f.reason);
    ck_assert_msg(strstr(f.mend, own ? "for user 0 alone" : "adduser $USER") != NULL, "%s", f.mend);
    if (getuid() == 0) {
        ck_assert_int_eq(seteuid(0), 0);
    }
}

START_TEST(closed_socket)
{
    check_closed_socket(false);
    if (geteuid() == 0) {
        check_closed_socket(true);
    }
}
END_TEST

/* What is not there is no failure. */
START_TEST(nothing_to_look_at_is_skipped)
{
    no_nvidia();
    no_answer();
    drop("/etc/systemd/system/gpud.service");
    drop("/etc/OpenCL/vendors/pocl.icd");
    static const char *const skipped[] = {"driver", "kernel-memory", "devices", "users",
                                          "group",  "cache",         "memlock", "libraries",
                                          "pocl",   "health"};
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0]; i++) {
        struct finding f = look(skipped[i]);
        ck_assert_msg(f.state == FINDING_SKIPPED && f.reason[0] != '\0', "%s: %s", skipped[i],
                      f.reason);
    }
    host.url = "tcp://127.0.0.1:1";
    ck_assert_int_eq(look("socket").state, FINDING_SKIPPED);
}
END_TEST

START_TEST(the_worst_finding_remains)
{
    struct finding f = {.state = FINDING_OK};
    finding_add(&f, FINDING_OK, "", "good");
    finding_add(&f, FINDING_FAILURE, "mend %s", "two\nlines");
    finding_add(&f, FINDING_FAILURE, "other", "another");
    finding_mend(&f, "other");
    finding_add(&f, FINDING_WARNING, "other", "less");
    ck_assert_int_eq(f.state, FINDING_FAILURE);
    ck_assert_str_eq(f.reason, "two lines");
    ck_assert_str_eq(f.mend, "mend %s");
}
END_TEST

START_TEST(versions_are_numbers)
{
    struct version v;
    const struct version small = {{1, 9, 0}};
    const struct version large = {{1, 10, 0}};
    ck_assert(version_read("/lib/libx64.so.535.183.01", &v));
    ck_assert(v.part[0] == 535 && v.part[1] == 183 && v.part[2] == 1);
    ck_assert(version_read("3.1+debian", &v) && v.part[1] == 1 && v.part[2] == 0);
    ck_assert(!version_read("libx.so.1", &v) && !version_read("", &v));
    ck_assert_int_lt(version_compare(&small, &large), 0);
    ck_assert_int_gt(version_compare(&large, &small), 0);
    ck_assert_int_eq(version_compare(&large, &large), 0);
}
END_TEST

/* A daemon that is stopped accepts connections and answers nothing. */
START_TEST(a_daemon_that_hangs_is_not_waited_for)
{
    struct facts f;
    facts_ask(url, 100, &f);
    ck_assert(!f.reached && f.listening);
    ck_assert_int_eq(f.pid, getpid());
    ck_assert_int_ne(f.code, 0);
    stale_socket();
    facts_ask(url, 100, &f);
    ck_assert(!f.reached && !f.listening && f.code == GPUD_ERR_CONNECT);
    ck_assert_str_eq(f.error, "Connection refused");
}
END_TEST

SUITE_MAIN_IN("doctor", setup, teardown, a_good_host_has_no_findings, each_breakage_is_found,
              each_check_has_a_breakage, disks_that_load_or_keep_nothing, closed_socket,
              nothing_to_look_at_is_skipped, the_worst_finding_remains, versions_are_numbers,
              a_daemon_that_hangs_is_not_waited_for)

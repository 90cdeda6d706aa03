/* Checks of libraries and compilers, and the known faults of versions. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "gpuctl/base/file.h"
#include "gpuctl/doctor/check.h"

#define VENDORS   "/etc/OpenCL/vendors"
#define POCL_SIZE ((size_t)64 << 20) /* bytes of its library at most */

/* ---- OpenCL ---------------------------------------------------------------------------------- */

/* The library that a file of an OpenCL driver names. */
static void icd_read(const struct host *h, const char *file, char *out, size_t size)
{
    char path[PATH_MAX];
    (void)host_read(host_path(h, path, VENDORS "/%s", file), out, size);
    out[strcspn(out, "\r\n")] = '\0';
}

/* Calls `look` with each OpenCL driver's library until it returns true; returns whether one did. */
static bool each_icd(const struct host *h,
                     bool (*look)(const struct host *h, const char *library, void *data),
                     void *data)
{
    char path[PATH_MAX];
    char library[PATH_MAX];
    bool over = false;
    DIR *dir = opendir(host_path(h, path, VENDORS));
    const struct dirent *entry;
    while (dir != NULL && !over && (entry = readdir(dir)) != NULL) {
        size_t n = strlen(entry->d_name);
        if (n > 4 && strcmp(entry->d_name + n - 4, ".icd") == 0) {
            icd_read(h, entry->d_name, library, sizeof library);
            over = look(h, library, data);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return over;
}

struct icds {
    struct finding *finding;
    unsigned usable;
};

static bool look_at_icd(const struct host *h, const char *library, void *data)
{
    struct icds *all = data;
    char path[PATH_MAX];
    if (host_library(h, library, path)) {
        all->usable++;
    } else {
        finding_add(all->finding, FINDING_WARNING, "apt-get install --reinstall pocl-opencl-icd",
                    VENDORS " names %.200s, which is not there", library);
    }
    return false;
}

void check_opencl(const struct doctor *d, struct finding *f)
{
    char path[PATH_MAX];
    struct icds all = {.finding = f};
    bool nvidia = host_nvidia_gpus(d->host) > 0;
    (void)each_icd(d->host, look_at_icd, &all);
    if (!host_library(d->host, "libOpenCL.so.1", path) || all.usable == 0) {
        finding_add(f, nvidia ? FINDING_SKIPPED : FINDING_FAILURE,
                    nvidia ? "" : "apt-get install ocl-icd-libopencl1 pocl-opencl-icd",
                    nvidia ? "no OpenCL here, and CUDA needs none"
                           : "no GPU of NVIDIA and no OpenCL driver: gpud has no device");
    }
    finding_add(f, FINDING_OK, "", "%u OpenCL driver(s)", all.usable);
}

/* ---- compilers ------------------------------------------------------------------------------- */

/* Finds a library of the CUDA toolkit by one of its names: where the loader looks, or in the
 * toolkit. */
static bool find_in_toolkit(const struct host *h, const char *const names[3], char out[PATH_MAX])
{
    char path[PATH_MAX];
    for (size_t i = 0; i < 3 && names[i] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/lib64/%s", h->cuda, names[i]);
        if (host_library(h, names[i], out) || (h->cuda[0] != '\0' && host_library(h, path, out))) {
            return true;
        }
        (void)snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", names[i]);
        if (host_library(h, path, out)) {
            return true;
        }
    }
    return false;
}

static bool find_nvcc(const struct host *h)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/bin/nvcc", h->cuda);
    return (h->cuda[0] != '\0' && host_exists(h, path)) ||
           host_exists(h, "/usr/local/cuda/bin/nvcc") || host_exists(h, "/usr/bin/nvcc");
}

/* NVRTC's code runs on drivers from a version on. */
static void compare_nvrtc(const struct host *h, const char *nvrtc, struct finding *f)
{
    static const struct {
        const char *name;
        unsigned driver;
    } least[] = {{"libnvrtc.so.13", 580}, {"libnvrtc.so.12", 525}};
    char path[PATH_MAX];
    struct version driver;
    const char *name = strrchr(nvrtc, '/') + 1;
    if (!host_library(h, "libcuda.so.1", path) || !version_read(strrchr(path, '/'), &driver)) {
        return; /* another check's */
    }
    for (size_t i = 0; i < sizeof least / sizeof least[0]; i++) {
        if (strncmp(name, least[i].name, strlen(least[i].name)) == 0 &&
            driver.part[0] < least[i].driver) {
            finding_add(f, FINDING_FAILURE, "apt-get install nvidia-driver (or an older libnvrtc)",
                        "%s makes code for drivers from %u on, this one is %u", name,
                        least[i].driver, driver.part[0]);
        }
    }
}

void check_compilers(const struct doctor *d, struct finding *f)
{
    static const char *const nvrtc[3] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    char path[PATH_MAX];
    bool nvidia = host_nvidia_gpus(d->host) > 0;
    if (!nvidia && !host_exists(d->host, "/usr/bin/ld")) {
        finding_add(f, FINDING_FAILURE, "apt-get install binutils",
                    "/usr/bin/ld is missing, by which PoCL links each kernel");
    }
    if (!nvidia) {
        finding_add(f, FINDING_OK, "",
                    "the linker for PoCL is there; CUDA C needs a GPU of NVIDIA");
        return;
    }
    bool nvcc = find_nvcc(d->host);
    if (find_in_toolkit(d->host, nvrtc, path)) {
        compare_nvrtc(d->host, path, f);
    } else {
        finding_add(f, nvcc ? FINDING_WARNING : FINDING_FAILURE,
                    "apt-get install libnvrtc12, or a CUDA toolkit",
                    "NVRTC is missing: built-in kernels serve only the GPUs of the build%s",
                    nvcc ? "" : ", and CUDA C does not compile");
    }
    if (nvcc && !host_exists(d->host, "/usr/bin/gcc") && !host_command(d->host, "gcc", path)) {
        finding_add(f, FINDING_WARNING, "apt-get install gcc g++", "nvcc is there, gcc is not");
    }
    finding_add(f, FINDING_OK, "", "NVRTC%s",
                nvcc ? " and nvcc" : "; nvcc, for whole CUDA programs, is not here");
}

void check_libraries(const struct doctor *d, struct finding *f)
{
    static const struct {
        const char *names[3];
        const char *what;
        const char *mend;
    } wanted[] = {
        {{"libnvidia-ml.so.1"}, "NVML (health)", "apt-get install libnvidia-ml1"},
        {{"libcublas.so.13", "libcublas.so.12"}, "cuBLAS (gemm)", "apt-get install libcublas12"},
        {{"libcufft.so.12", "libcufft.so.11"}, "cuFFT (fft)", "apt-get install libcufft11"},
        {{"libcurand.so.10"}, "cuRAND (random)", "apt-get install libcurand10"},
    };
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!find_in_toolkit(d->host, wanted[i].names, path)) {
            finding_add(f, FINDING_WARNING, wanted[i].mend,
                        "%s is not here: gpud works without, some operations are slower",
                        wanted[i].what);
        }
    }
    finding_add(f, FINDING_OK, "", "NVML, cuBLAS, cuFFT and cuRAND");
}

/* ---- known faults of versions ---------------------------------------------------------------- */

struct known {
    struct version below; /* the row is for versions before it; the first such row counts */
    enum finding_state state;
    const char *text;
    const char *mend;
};

static const struct known known_nng[] = {
    {{{1, 5, 2}},
     FINDING_WARNING,
     "gpud was not tested with versions before 1.5.2",
     "apt-get install --only-upgrade libnng1 && systemctl restart gpud"},
    {{{1, 5, 3}},
     FINDING_OK,
     "its faults (REP loses connections, #1518, its HTTP server) are in parts that gpud does not "
     "use; a TLS stream closes when a send is aborted, which gpud avoids",
     ""},
    {{{2, 0, 0}}, FINDING_OK, "newer than 1.5.2, with which gpud was tested", ""},
};

static const struct known known_pocl[] = {
    {{{3, 1, 0}},
     FINDING_WARNING,
     "gpud was not tested with versions before 3.1",
     "apt-get install --only-upgrade pocl-opencl-icd && systemctl restart gpud-launcher gpud"},
    {{{3, 2, 0}},
     FINDING_OK,
     "it runs /usr/bin/ld for each kernel, ends its worker where its cache is full (gpud chooses "
     "another folder), and loads a damaged cached kernel (each worker has a cache of its own)",
     ""},
    {{{99, 0, 0}}, FINDING_OK, "newer than 3.1, with which gpud was tested", ""},
};

static void report_known(const char *what, const struct version *v, const struct known *rows,
                         size_t count, struct finding *f)
{
    for (size_t i = 0; i < count; i++) {
        if (version_compare(v, &rows[i].below) < 0) {
            finding_add(f, rows[i].state, rows[i].mend, "%s %u.%u.%u: %s", what, v->part[0],
                        v->part[1], v->part[2], rows[i].text);
            return;
        }
    }
    finding_add(f, FINDING_WARNING, "apt-get install libnng1", "%s %u.%u.%u is unknown to gpud",
                what, v->part[0], v->part[1], v->part[2]);
}

void check_nng(const struct doctor *d, struct finding *f)
{
    char path[PATH_MAX];
    struct version v;
    if (!host_library(d->host, "libnng.so.1", path)) {
        finding_add(f, FINDING_FAILURE, "apt-get install libnng1",
                    "libnng.so.1 is missing: gpud does not start");
    } else if (!version_read(strstr(strrchr(path, '/'), ".so.") + strlen(".so."), &v)) {
        finding_add(f, FINDING_SKIPPED, "", "%s does not tell its version", path);
    } else {
        report_known("NNG", &v, known_nng, sizeof known_nng / sizeof known_nng[0], f);
    }
}

static bool is_pocl(const struct host *h, const char *library, void *data)
{
    return strstr(library, "libpocl") != NULL && host_library(h, library, data);
}

/* The version in the text that the library gives as that of its platform. */
static bool pocl_version(const char *path, struct version *ret_version)
{
    static const char mark[] = " PoCL ";
    struct file file = {0};
    struct ctl_err e;
    bool found = false;
    if (file_load(path, (struct file_limit){POCL_SIZE, POCL_SIZE}, &file, &e) != 0) {
        return false;
    }
    const char *end = (const char *)file.data + file.size;
    for (const char *at = file.data;
         !found && (at = memmem(at, (size_t)(end - at), mark, strlen(mark))) != NULL;) {
        char text[32];
        at += strlen(mark);
        size_t n = (size_t)(end - at) < sizeof text - 1 ? (size_t)(end - at) : sizeof text - 1;
        memcpy(text, at, n);
        text[n] = '\0';
        found = text[0] >= '0' && text[0] <= '9' && version_read(text, ret_version);
    }
    file_finish(&file);
    return found;
}

void check_pocl(const struct doctor *d, struct finding *f)
{
    char path[PATH_MAX];
    struct version v;
    if (!each_icd(d->host, is_pocl, path)) {
        finding_add(f, FINDING_SKIPPED, "", "PoCL is not installed");
    } else if (!pocl_version(path, &v)) {
        finding_add(f, FINDING_SKIPPED, "", "%s does not tell its version", path);
    } else {
        report_known("PoCL", &v, known_pocl, sizeof known_pocl / sizeof known_pocl[0], f);
    }
}

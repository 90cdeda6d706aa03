"""The layers, as data: the folders of the project, their rooms, and what each may use.

A folder is a link unit. check-layering compares the tables with the tree and with docs/architecture.md: what is
not in a table fails, and so does a line that nothing needs.
"""
import fnmatch
import os
import re

# folder, or room of a folder -> folders, rooms and files (without suffix) that it may use, besides itself.
# A room without a row of its own uses what its folder may use, and the rooms below it; a room with one, only that.
MAY_USE = {
    "common": [],
    "proto": ["common"],
    "kernels": ["common"],
    "client": ["common", "proto"],
    "gpuctl": ["common"],
    "daemon/pool": ["common"],
    "daemon/backend": ["common", "kernels"],
    "daemon/backend/cuda/image": ["common", "daemon/backend"],
    "daemon/backend/cuda/source": ["common", "daemon/backend"],
    "daemon/confine": ["common"],
    "daemon/compile": ["common", "proto", "kernels", "daemon/backend", "daemon/confine"],
    "daemon/launcher": ["common", "proto"],
    "daemon/monitor": ["common", "proto"],
    "daemon/loop": ["common"],
    "daemon/worker": ["common", "proto", "daemon/pool", "daemon/backend", "daemon/confine", "daemon/loop"],
    "daemon/front": ["common", "proto", "kernels", "daemon/loop"],
    "daemon/front/sched": ["common", "daemon/front/workers", "daemon/front/resolve", "daemon/front/model"],
    "daemon/front/clients": ["common", "proto", "daemon/loop", "daemon/front/settings", "daemon/front/model/front",
                             "daemon/front/model/op", "daemon/front/model/request"],
    "daemon/front/resolve": ["common", "proto", "kernels", "daemon/front/model"],
    "daemon/front/settings": ["common", "proto/limits"],
    "examples": [],
}
# Code that looks at all the rest: tests and benchmarks may include anything of the project.
FREE = ("tests", "bench")

# folder -> its rooms from the top: a room uses those below it. "name/" is a folder; other names are files of
# the folder itself. Names in one string are one room; rooms in a tuple do not use each other.
ROOMS = {
    "examples": [("edges/", "tutorial/", "example export frames loop_* steps threads")],
    "client": ["src/api/", "src/session/", "src/objects/", "src/link/", "src/base/", "src/wire/", "include/gpud/"],
    "gpuctl": ["main commands", "commands/", ("run/", "pool/", "trace/", "doctor/", "top/"), "ctl/", "sheet/", "input/", "base/"],
    "daemon/backend": ["list", ("cuda/", "opencl/", "sim/"), "backend built messages options ranges wrapped"],
    "daemon/backend/cuda": ["device", "compile/", "image/", "source/", "library/", "run/", "driver/"],
    "daemon/worker": ["main confine", "serve/", "spill/", "run/", "copy/", "memory/"],
    "daemon/front": ["main pipeline* ending housekeeping", "requests/", "metrics/", "views/", "record/", "devices/", "tenants/", "memory/",
                     "modules/", "sched/", "workers/", "resolve/", "clients/", "model/", "settings/"],
}
SOURCES_MAX = 30  # .c files of one folder

# folder whose files may use each other in circles -> the reason
CIRCLES_STAY = {
    "daemon/pool": "its files are divided anew soon",
}

# library's header, "*" for any text -> folders and rooms that may include it; None: all of them
LIBRARIES = {
    "uv.h": ["daemon/loop", "daemon/front/clients", "daemon/front/model", "daemon/front/modules",
             "daemon/front/workers", "daemon/worker/copy", "daemon/worker/memory", "daemon/worker/run",
             "daemon/worker/serve", "examples"],
    "nng/nng.h": ["daemon/front/clients"],
    "nng/supplemental/*": ["daemon/front/clients"],
    "mbedtls/*.h": ["client/src/wire", "common", "daemon/front/settings"],
    "systemd/sd-daemon.h": ["daemon/front/views"],
    "libeconf*.h": ["daemon/front/settings"],
    "microhttpd.h": ["daemon/front/metrics"],
    "jansson.h": ["gpuctl/sheet"],
    "libsmartcols.h": ["gpuctl/sheet"],
    "ncurses.h": ["gpuctl/top"],
    "png.h": ["examples/edges"],
    "jpeglib.h": ["examples/edges"],
    "lz4.h": ["daemon/backend/cuda/image"],
    "zstd.h": ["daemon/backend/cuda/image"],
    "CL/cl.h": ["daemon/backend/opencl", "examples/tutorial"],
    "cuda.h": ["daemon/backend/cuda/driver"],
    "cudaTypedefs.h": ["daemon/backend/cuda/driver", "examples"],
    "xxhash.h": ["common"],
    "uthash.h": None,
    "utlist.h": None,
    "sanitizer/*.h": None,
    "gpud/gpud.h": ["client/src/api", "gpuctl", "examples"],
}
SYSTEM = re.compile(
    r"(linux|sys|netinet|arpa|asm)/.*"
    r"|(assert|complex|ctype|dirent|dlfcn|elf|endian|errno|fcntl|fenv|fnmatch|fts|ftw|getopt|glob|grp|inttypes|langinfo|"
    r"libgen|limits|link|locale|malloc|math|net/if|netdb|poll|pthread|pwd|sched|semaphore|setjmp|signal|spawn|"
    r"stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|syslog|termios|"
    r"tgmath|threads|time|ucontext|unistd|wchar|wctype)\.h")
GENERATED = re.compile(r"build\.h|generated/.*")  # made when configuring

GPU_SYMBOL = re.compile(r"^(cl|cu|cuda|vk|nvml|nvrtc|cublas|cufft|ze|hip)[A-Z]\w*$")
GPU_LIBRARY = re.compile(r"^lib(OpenCL|cuda|cudart|nvrtc|nvidia|vulkan|pocl|ze_loader|amdhip)", re.I)


# ---- looking things up ---------------------------------------------------------------------------

def lies_in(path, place):
    return path == place or path.startswith(place + "/")


def file_of(path):
    """A .c and its .h are one file."""
    return os.path.splitext(path)[0]


def folder_of(path):
    """The folder that is the path's link unit; what it is called, where no table knows it."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "daemon" else parts[0]


def row_of(path):
    """The most particular row of MAY_USE for the path."""
    return max((place for place in MAY_USE if lies_in(path, place)), key=len, default=None)


def may_use(path, target):
    """What the rows say. That rooms below may be used follows from their order."""
    return lies_in(target, row_of(path)) or bool(permissions(path, target))


def permissions(path, target):
    """The (row, place) of MAY_USE by which a file may use another one."""
    row = row_of(path)
    return {(row, place) for place in MAY_USE.get(row, ()) if lies_in(file_of(target), place)}


def names_of(folder):
    """The names of the folder's rooms, from the top."""
    for level in ROOMS[folder]:
        for room in [level] if isinstance(level, str) else level:
            yield from room.split()


def named(rest, name):
    """Is a path from the folder on the one of that name in ROOMS, or in it?"""
    return rest.startswith(name) if name.endswith("/") else fnmatch.fnmatchcase(file_of(rest), name)


def room_in(folder, path):
    """(rank from the top, room) of a path in a folder with rooms; None if it lies in no room."""
    rest = path[len(folder) + 1:]
    for rank, level in enumerate(ROOMS[folder]):
        for room in [level] if isinstance(level, str) else level:
            if any(named(rest, name) for name in room.split()):
                return rank, room
    return None


def out_of_place(path):
    """Why no table has a place for the path, or None."""
    here = folder_of(path)
    if here not in MAY_USE:
        return f"folder {here} is in no table of scripts/layers.py"
    while here in ROOMS:
        found = room_in(here, path)
        if not found:
            return f"is in no room of {here}/"
        if not found[1].endswith("/"):
            return None
        here = here + "/" + found[1][:-1]
    if os.path.dirname(path) != here:
        return f"folder {os.path.dirname(path)} is in no table of scripts/layers.py"
    return None


def wrong_way(path, target):
    """Why a file must not use another one of its own folder, or None."""
    for outer in (f for f in ROOMS if lies_in(path, f) and lies_in(target, f)):
        above, below = room_in(outer, path), room_in(outer, target)
        if above and below and above != below:
            if above[0] > below[0]:
                return f"up, from {above[1]} to {below[1]}"
            if above[0] == below[0]:
                return f"aside, from {above[1]} to {below[1]}"
    row = row_of(path)
    if row != folder_of(path) and not may_use(path, target):
        return f"out of {row}, which must not use it"
    return None

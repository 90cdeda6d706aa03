# What gpud is built with, looked for once and told at once: a missing library is named with its
# Debian package, and all that are missing are named together. scripts/packages.txt lists the same.
#
#   GPUD_OPENCL, GPUD_CUDA, GPUD_SYSTEMD   AUTO (if its headers are there), ON (must be), OFF
find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
    message(FATAL_ERROR "gpud needs pkg-config: apt-get install pkg-config")
endif()
set(gpud_missing "")

# gpud_needs_module(PREFIX module package): a library that pkg-config knows, as PkgConfig::PREFIX.
macro(gpud_needs_module prefix module package)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(NOT ${prefix}_FOUND)
        list(APPEND gpud_missing ${package})
    endif()
endmacro()

# gpud_needs_header(VARIABLE header package)
macro(gpud_needs_header variable header package)
    find_path(${variable} ${header})
    mark_as_advanced(${variable})
    if(NOT ${variable})
        list(APPEND gpud_missing ${package})
    endif()
endmacro()

# gpud_option(name VARIABLE package what): decides AUTO by VARIABLE, which says whether it was found.
macro(gpud_option name found package what)
    set(${name} AUTO CACHE STRING "${what}: AUTO, ON or OFF")
    set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
    if(NOT ${name})
        message(STATUS "gpud: without ${what}: ${name}=OFF")
        set(GPUD_WITH_${what} FALSE)
    elseif(${found})
        message(STATUS "gpud: with ${what}")
        set(GPUD_WITH_${what} TRUE)
    elseif(${name} STREQUAL "AUTO")
        message(STATUS "gpud: without ${what}: ${package} is not installed")
        set(GPUD_WITH_${what} FALSE)
    else()
        list(APPEND gpud_missing ${package})
    endif()
endmacro()

gpud_needs_module(LIBUV libuv libuv1-dev)
gpud_needs_module(LIBECONF libeconf libeconf-dev)
gpud_needs_module(SMARTCOLS smartcols libsmartcols-dev)
gpud_needs_module(JANSSON jansson libjansson-dev)
gpud_needs_module(PNG libpng libpng-dev)
gpud_needs_header(UTHASH_INCLUDE uthash.h uthash-dev)
gpud_needs_header(XXHASH_INCLUDE xxhash.h libxxhash-dev)
find_package(JPEG QUIET)
if(NOT JPEG_FOUND)
    list(APPEND gpud_missing libjpeg-dev)
endif()
find_package(nng QUIET)
if(NOT nng_FOUND)
    list(APPEND gpud_missing libnng-dev)
endif()
if(BUILD_TESTING)
    gpud_needs_module(CHECK check check)
    gpud_needs_header(MSGPACK_INCLUDE msgpack.h libmsgpack-dev)
endif()

pkg_check_modules(LIBSYSTEMD QUIET IMPORTED_TARGET GLOBAL libsystemd)
gpud_option(GPUD_SYSTEMD LIBSYSTEMD_FOUND libsystemd-dev systemd)
find_path(OPENCL_HEADERS CL/cl.h)
mark_as_advanced(OPENCL_HEADERS)
gpud_option(GPUD_OPENCL OPENCL_HEADERS opencl-headers OpenCL)

# Formats that nvcc compresses fatbins in.
pkg_check_modules(LZ4 QUIET IMPORTED_TARGET GLOBAL liblz4)
pkg_check_modules(ZSTD QUIET IMPORTED_TARGET GLOBAL libzstd)
foreach(packing LZ4 ZSTD)
    if(NOT ${packing}_FOUND)
        string(TOLOWER ${packing} package)
        message(STATUS "gpud: fatbins compressed by ${packing} are refused: "
                       "lib${package}-dev is not installed")
    endif()
endforeach()

# Which CUDA will do, daemon/backend knows; here it is only left out.
set(GPUD_CUDA AUTO CACHE STRING "CUDA: AUTO, ON or OFF")
set_property(CACHE GPUD_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT GPUD_CUDA)
    set(CUDA_HEADERS OFF)
endif()

if(gpud_missing)
    list(REMOVE_DUPLICATES gpud_missing)
    list(JOIN gpud_missing " " gpud_missing)
    message(FATAL_ERROR "gpud needs what is not installed. On Debian:\n"
                        "  apt-get install ${gpud_missing}\n"
                        "(scripts/deps.sh build test does that. -DBUILD_TESTING=OFF needs less.)")
endif()

# The GPUs that device code is made for when gpud is built. Sets GPUD_NVCC, GPUD_DEVICE_ARCHS and
# GPUD_NVCC_ARCHS, nvcc's options for them; the lists are empty where no device code is made.
# Other GPUs are served as well: gpud-compile makes the built-in kernels with NVRTC at first use.
#
#   GPUD_CUDA_ARCHS   native: the GPUs of this machine; all: what packages bring; none; or a list
#                     such as 80;90. The last one's PTX comes along.
set(archs native)
if(GPUD_SANITIZE OR GPUD_FUZZ)
    set(archs none) # such builds have no time for it
endif()
set(GPUD_CUDA_ARCHS ${archs} CACHE STRING "GPUs that device code is made for: native, all, none or a list")
find_program(GPUD_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
find_program(GPUD_NVIDIA_SMI nvidia-smi)
mark_as_advanced(GPUD_NVCC GPUD_NVIDIA_SMI)

# "9.0" for each GPU here, as 90. A driver that does not answer is as good as none.
function(gpud_native_archs ret_archs)
    set(found "")
    if(GPUD_NVIDIA_SMI)
        execute_process(COMMAND ${GPUD_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
                        OUTPUT_VARIABLE found ERROR_QUIET TIMEOUT 10)
    endif()
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" found "${found}")
    string(REPLACE "." "" found "${found}")
    list(REMOVE_DUPLICATES found)
    # what this nvcc does not know is left to NVRTC
    execute_process(COMMAND ${GPUD_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
    foreach(arch IN LISTS found)
        if(NOT "${known}" MATCHES "sm_${arch}\n")
            list(REMOVE_ITEM found ${arch})
        endif()
    endforeach()
    list(SORT found COMPARE NATURAL)
    set(${ret_archs} ${found} PARENT_SCOPE)
endfunction()

set(GPUD_DEVICE_ARCHS "")
if(GPUD_NVCC AND GPUD_CUDA)
    if(GPUD_CUDA_ARCHS STREQUAL "all")
        set(GPUD_DEVICE_ARCHS 75 80 86 89 90)
    elseif(GPUD_CUDA_ARCHS STREQUAL "native")
        gpud_native_archs(GPUD_DEVICE_ARCHS)
    elseif(NOT GPUD_CUDA_ARCHS STREQUAL "none")
        set(GPUD_DEVICE_ARCHS ${GPUD_CUDA_ARCHS})
    endif()
endif()
set(GPUD_NVCC_ARCHS "")
foreach(arch IN LISTS GPUD_DEVICE_ARCHS)
    if(NOT arch MATCHES "^[0-9]+$")
        message(FATAL_ERROR "GPUD_CUDA_ARCHS=${GPUD_CUDA_ARCHS}: native, all, none or a list such as 80;90")
    endif()
    list(APPEND GPUD_NVCC_ARCHS -gencode arch=compute_${arch},code=sm_${arch})
endforeach()
if(GPUD_DEVICE_ARCHS)
    list(GET GPUD_DEVICE_ARCHS -1 newest)
    list(APPEND GPUD_NVCC_ARCHS -gencode arch=compute_${newest},code=compute_${newest})
    list(JOIN GPUD_DEVICE_ARCHS " " text)
    message(STATUS "gpud: device code by ${GPUD_NVCC} for sm_: ${text} (GPUD_CUDA_ARCHS=${GPUD_CUDA_ARCHS})")
elseif(GPUD_NVCC AND GPUD_CUDA)
    message(STATUS "gpud: no device code is made (GPUD_CUDA_ARCHS=${GPUD_CUDA_ARCHS}; all: for every GPU): "
                   "built-in kernels are compiled when first used")
else()
    message(STATUS "gpud: no device code is made (no nvcc): built-in kernels are compiled when first used")
endif()

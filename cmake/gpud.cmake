# Settings that every target of the project shares, and the two ways to make one.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

set(GPUD_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")
option(GPUD_FUZZ "Build the fuzz targets (clang only)" OFF)
if(GPUD_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "GPUD_FUZZ needs clang: cmake --preset fuzz")
endif()

add_library(gpud_flags INTERFACE)
target_include_directories(gpud_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
# uthash ends the process without memory for a table; with the second, HASH_ADD reports it (common/hash.h).
target_compile_definitions(gpud_flags INTERFACE _GNU_SOURCE HASH_NONFATAL_OOM=1)
target_compile_options(gpud_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
    $<$<C_COMPILER_ID:Clang>:-Wno-missing-field-initializers> -Werror)
if(GPUD_SANITIZE)
    target_compile_options(gpud_flags INTERFACE
        -fsanitize=${GPUD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(gpud_flags INTERFACE -fsanitize=${GPUD_SANITIZE})
endif()
if(GPUD_FUZZ)
    target_compile_options(gpud_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# gpud_library(name SOURCES... [LINK libs...]): a static library of one folder.
function(gpud_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC gpud_flags ${ARG_LINK})
endfunction()

# gpud_program(name SOURCES... [LINK libs...])
function(gpud_program name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE gpud_flags ${ARG_LINK})
endfunction()

# Programs with sanitizers are slow: a test is given up so many times later there.
set(GPUD_TEST_PATIENCE 1)
if(GPUD_SANITIZE)
    set(GPUD_TEST_PATIENCE 3)
endif()

# gpud_test_time(name seconds): of a whole Check program; one test without a limit of its own has 60.
# In a new build folder ctest knows no times yet: what may take longest begins first.
function(gpud_test_time name seconds)
    math(EXPR timeout "${seconds} * ${GPUD_TEST_PATIENCE}")
    set(environment CK_DEFAULT_TIMEOUT=set:60 CK_TIMEOUT_MULTIPLIER=set:${GPUD_TEST_PATIENCE}
        GPUD_TEST_PATIENCE=set:${GPUD_TEST_PATIENCE})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} COST ${seconds}
                         ENVIRONMENT_MODIFICATION "${environment}")
endfunction()

# What every test that runs project code sees of the sanitizers' settings.
set(GPUD_TEST_ENVIRONMENT "")
if(GPUD_SANITIZE MATCHES "thread")
    list(APPEND GPUD_TEST_ENVIRONMENT
         "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1")
elseif(GPUD_SANITIZE MATCHES "address")
    list(APPEND GPUD_TEST_ENVIRONMENT
         "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0"
         "UBSAN_OPTIONS=print_stacktrace=1")
endif()

# What `scripts/test.sh tsan` builds and runs: tests of code in which threads meet.
set(GPUD_THREAD_LABELS common front client)
add_custom_target(tests_threads)

# Folders whose tests compute much themselves. Other tests wait for what they test, and are compiled
# with -O1, which takes half of the time.
set(GPUD_TEST_COMPUTES sim worker pool kernels)

# gpud_test(name SOURCES... [LINK libs...] [TIMEOUT s] [LABELS more...] [LOCK resources...]
#           [NEEDS targets...] [THREADS]):
# a Check program, one ctest entry, label = its folder. NEEDS: programs that it starts. LOCK: never
# beside a test with the same lock ("cpu" for heavy ones). THREADS: runs under TSan as well.
function(gpud_test name)
    cmake_parse_arguments(ARG "THREADS" "TIMEOUT" "SOURCES;LINK;LABELS;LOCK;NEEDS" ${ARGN})
    if(NOT BUILD_TESTING)
        return()
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE gpud_flags ${ARG_LINK} PkgConfig::CHECK)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    if(ARG_NEEDS)
        add_dependencies(${name} ${ARG_NEEDS})
    endif()
    add_test(NAME ${name} COMMAND ${name})
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME label)
    if(NOT label IN_LIST GPUD_TEST_COMPUTES)
        target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    endif()
    set(labels ${label} ${ARG_LABELS})
    if(ARG_THREADS OR label IN_LIST GPUD_THREAD_LABELS)
        list(APPEND labels threads)
        add_dependencies(tests_threads ${name})
    endif()
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 300)
    endif()
    gpud_test_time(${name} ${ARG_TIMEOUT})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}"
                         ENVIRONMENT "${GPUD_TEST_ENVIRONMENT}")
    if(ARG_LOCK)
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK "${ARG_LOCK}")
    endif()
endfunction()

# gpud_fuzz(name SOURCES... [LINK libs...] [CORPUS dir] [DICT file]): a libFuzzer target, built by
# preset fuzz only. Its test runs for GPUD_FUZZ_SECONDS (60) from a copy of the seeds.
add_custom_target(tests_fuzz)
function(gpud_fuzz name)
    cmake_parse_arguments(ARG "" "CORPUS;DICT" "SOURCES;LINK" ${ARGN})
    if(NOT GPUD_FUZZ)
        return()
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE gpud_flags ${ARG_LINK})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_dependencies(tests_fuzz ${name})
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/scripts/fuzz.sh $<TARGET_FILE:${name}>
                                  "${ARG_CORPUS}" "${ARG_DICT}")
    set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 900
                         ENVIRONMENT "${GPUD_TEST_ENVIRONMENT}")
endfunction()

# build.h, included as "build.h" by the programs' main files: taken when configured, so that all
# programs of one build directory agree.
find_package(Git QUIET)
set(GPUD_BUILD_SUFFIX "" CACHE STRING "Tells this build from others of its version; empty: git's commit")
if(GIT_FOUND AND NOT GPUD_BUILD_SUFFIX)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                    OUTPUT_VARIABLE gpud_commit OUTPUT_STRIP_TRAILING_WHITESPACE
                    RESULT_VARIABLE gpud_no_commit ERROR_QUIET)
    if(NOT gpud_no_commit)
        set(GPUD_BUILD_SUFFIX "+${gpud_commit}")
    endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build.h.in ${PROJECT_BINARY_DIR}/build.h @ONLY)

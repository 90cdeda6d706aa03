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

add_library(gpud_flags INTERFACE)
target_include_directories(gpud_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(gpud_flags INTERFACE _GNU_SOURCE)
target_compile_options(gpud_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    -Wno-format-truncation -Werror)
if(GPUD_SANITIZE)
    target_compile_options(gpud_flags INTERFACE
        -fsanitize=${GPUD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
    target_link_options(gpud_flags INTERFACE -fsanitize=${GPUD_SANITIZE})
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

# gpud_test(name SOURCES... [LINK libs...]): a Check program, one ctest entry, label = its folder.
function(gpud_test name)
    cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK" ${ARGN})
    if(NOT BUILD_TESTING)
        return()
    endif()
    find_package(PkgConfig REQUIRED)
    if(NOT TARGET PkgConfig::CHECK)
        pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET GLOBAL check)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE gpud_flags ${ARG_LINK} PkgConfig::CHECK)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name})
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME label)
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 120)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# build.h, included as "build.h" by the programs' main files: taken when configured, so that all
# programs of one build directory agree.
find_package(Git QUIET)
set(GPUD_BUILD_SUFFIX "")
if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                    OUTPUT_VARIABLE gpud_commit OUTPUT_STRIP_TRAILING_WHITESPACE
                    RESULT_VARIABLE gpud_no_commit ERROR_QUIET)
    if(NOT gpud_no_commit)
        set(GPUD_BUILD_SUFFIX "+${gpud_commit}")
    endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build.h.in ${PROJECT_BINARY_DIR}/build.h @ONLY)

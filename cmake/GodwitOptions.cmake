# Build options, and the two interface targets every component links: warnings and sanitizers.
option(GODWIT_DEVELOPER "Warnings are errors" OFF)
option(GODWIT_TESTS "Build the tests" OFF)
option(GODWIT_FUZZ "Build the libFuzzer targets; needs clang" OFF)
option(GODWIT_COVERAGE "Compile with coverage counters" OFF)
option(GODWIT_CUDA "Build the CUDA sources" OFF)
option(GODWIT_FULL_DEBUG_INFO "Sanitizer builds with all that a debugger wants" OFF)
set(GODWIT_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")

set(GODWIT_TEST_SET dev CACHE STRING "Which tests this build runs: dev, tsan or release")
set(GODWIT_TEST_ENVIRONMENT "" CACHE STRING "Environment of every unit test")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # base_dir lets several checkouts share one cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)

add_library(godwit_warnings INTERFACE)
target_compile_options(godwit_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 at -O3 takes joined strings for overlapping copies (GCC bug 105651).
  target_compile_options(godwit_warnings INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # What g++ does not ask for under the same names.
  target_compile_options(godwit_warnings INTERFACE -Wno-sign-conversion -Wno-unused-lambda-capture)
endif()
if(GODWIT_DEVELOPER)
  target_compile_options(godwit_warnings INTERFACE -Werror)
endif()
# What is tested is optimised, not what tests it: half of the time to compile it.
target_compile_options(godwit_warnings INTERFACE $<$<AND:$<CONFIG:Release>,$<BOOL:$<TARGET_PROPERTY:GODWIT_TEST>>>:-O1>)

add_library(godwit_sanitizers INTERFACE)
if(GODWIT_SANITIZE)
  # CAF binds references to null on purpose; everything else that UBSan finds is an error.
  target_compile_options(godwit_sanitizers INTERFACE -fsanitize=${GODWIT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(godwit_sanitizers INTERFACE -fsanitize=${GODWIT_SANITIZE})
  if(NOT GODWIT_FULL_DEBUG_INFO)
    target_compile_options(godwit_sanitizers INTERFACE -g1) # their reports need lines only; a third of the time to compile
  endif()
  if(GODWIT_SANITIZE MATCHES "undefined")
    target_compile_options(godwit_sanitizers INTERFACE -fno-sanitize=null,vptr -fno-sanitize-recover=undefined)
    # Not in tests, nor where CAF's templates are instantiated: there these checks take a quarter of the time to compile and
    # look at little else than the standard library. (Options after -fsanitize count; a target's own come before it.)
    target_compile_options(godwit_sanitizers INTERFACE
      $<$<OR:$<BOOL:$<TARGET_PROPERTY:GODWIT_TEST>>,$<IN_LIST:CAF_ENABLE_TYPE_ID_CHECKS,$<TARGET_PROPERTY:COMPILE_DEFINITIONS>>>:-fno-sanitize=alignment,pointer-overflow>)
  endif()
endif()
if(GODWIT_FUZZ)
  target_compile_options(godwit_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(GODWIT_COVERAGE)
  target_compile_options(godwit_sanitizers INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(godwit_sanitizers INTERFACE --coverage)
endif()
if(MOLD_PROGRAM)
  target_link_options(godwit_sanitizers INTERFACE -fuse-ld=mold)
endif()

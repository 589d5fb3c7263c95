# Targets dev_tests, tsan_tests and release_tests build what a preset runs.
if(GODWIT_TESTS)
  add_custom_target(${GODWIT_TEST_SET}_tests)
endif()

# godwit_component(NAME SOURCES ... [APART ...] [SCHEMAS ...] [DEPENDS ...] [PRIVATE ...] [TESTS ...] [TEST_DEPENDS ...]
#                  [LABELS ...] [SETS ...] [TOGETHER])
#
# Declares the static library godwit_NAME from SOURCES (relative to the calling folder) and, when tests are built,
# one Catch2 program test_NAME from TESTS: paths below tests/unit/<calling folder>. Every TEST_CASE becomes a ctest test.
#   APART         more sources, which are always compiled alone: they have options of their own, or unnamed namespaces with
#                 names that others have too (cmake/GodwitJoined.cmake)
#   SCHEMAS       Cap'n Proto files to generate and compile in
#   DEPENDS       libraries that the component's headers show; PRIVATE ones only its sources use
#   LABELS        ctest labels of its tests (default: fast)
#   SETS          in which builds the tests run: dev, tsan, release (default: dev); CAF says that they start actors, which
#                 ThreadSanitizer needs help with (tests/unit/caf_happens_before.cpp)
#   TOGETHER      all test cases run in one process, as one ctest test: they share something that is slow to start
function(godwit_component NAME)
  cmake_parse_arguments(ARG "TOGETHER" "" "SOURCES;APART;SCHEMAS;DEPENDS;PRIVATE;TESTS;TEST_DEPENDS;LABELS;SETS" ${ARGN})
  set(target godwit_${NAME})
  if(ARG_SCHEMAS)
    set(CAPNPC_SRC_PREFIX "${CMAKE_SOURCE_DIR}")
    set(CAPNPC_OUTPUT_DIR "${CMAKE_BINARY_DIR}/generated")
    set(CAPNPC_IMPORT_DIRS "${CMAKE_SOURCE_DIR}")
    file(MAKE_DIRECTORY "${CAPNPC_OUTPUT_DIR}")
    capnp_generate_cpp(schema_sources schema_headers ${ARG_SCHEMAS})
    # Generated code is not ours to keep free of warnings.
    set_source_files_properties(${schema_sources} PROPERTIES COMPILE_OPTIONS "-w")
  endif()
  if(ARG_SOURCES OR ARG_SCHEMAS)
    godwit_join(joined ${target} SOURCES ${ARG_SOURCES})
    add_library(${target} STATIC ${joined} ${ARG_APART} ${schema_sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE godwit_warnings ${ARG_PRIVATE})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "${CMAKE_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM ${scope} "${CMAKE_BINARY_DIR}/generated")
  target_link_libraries(${target} ${scope} godwit_sanitizers ${ARG_DEPENDS})

  if(NOT ARG_SETS)
    set(ARG_SETS dev)
  endif()
  if(GODWIT_TESTS AND ARG_TESTS AND GODWIT_TEST_SET IN_LIST ARG_SETS)
    file(RELATIVE_PATH folder "${CMAKE_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
    list(TRANSFORM ARG_TESTS PREPEND "${CMAKE_SOURCE_DIR}/tests/unit/${folder}/")
    if(NOT ARG_LABELS)
      set(ARG_LABELS fast)
    endif()
    set(helpers ${ARG_TESTS})
    list(FILTER ARG_TESTS INCLUDE REGEX "\\.test\\.cpp$")
    list(FILTER helpers EXCLUDE REGEX "\\.test\\.cpp$")
    godwit_join(joined test_${NAME} TESTS ${ARG_TESTS})
    set(cost 0)
    if("slow" IN_LIST ARG_LABELS)
      set(cost 500) # before short ones, so that none runs alone at the end
    endif()
    add_executable(test_${NAME} ${joined} ${helpers})
    target_link_libraries(test_${NAME} PRIVATE ${target} ${ARG_PRIVATE} ${ARG_TEST_DEPENDS}
      godwit_warnings godwit_test_main Catch2::Catch2)
    target_compile_definitions(test_${NAME} PRIVATE GODWIT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    set_target_properties(test_${NAME} PROPERTIES GODWIT_TEST ON)
    if(GODWIT_TEST_SET STREQUAL "tsan" AND "CAF" IN_LIST ARG_SETS)
      target_link_libraries(test_${NAME} PRIVATE $<TARGET_OBJECTS:godwit_caf_happens_before>)
    endif()
    add_dependencies(${GODWIT_TEST_SET}_tests test_${NAME})
    if(ARG_TOGETHER)
      add_test(NAME "${GODWIT_TEST_SET} ${NAME}" COMMAND test_${NAME})
      set_tests_properties("${GODWIT_TEST_SET} ${NAME}" PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600 COST ${cost}
        ENVIRONMENT "${GODWIT_TEST_ENVIRONMENT}")
    else()
      catch_discover_tests(test_${NAME} TEST_PREFIX "${GODWIT_TEST_SET} ${NAME}: " DISCOVERY_MODE PRE_TEST
        PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600 COST ${cost}
        ENVIRONMENT "${GODWIT_TEST_ENVIRONMENT}")
    endif()
  endif()
endfunction()

# godwit_program(NAME SOURCES ... DEPENDS ...): an executable in bin/, installed.
function(godwit_program NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${NAME} PRIVATE godwit_warnings godwit_sanitizers ${ARG_DEPENDS})
  install(TARGETS ${NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# godwit_fuzzer(NAME SOURCES ... DEPENDS ... CORPUS dir): a libFuzzer target fuzz_NAME over a seed corpus.
function(godwit_fuzzer NAME)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPENDS" ${ARGN})
  if(GODWIT_FUZZ)
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_executable(fuzz_${NAME} ${ARG_SOURCES})
    add_dependencies(fuzzers fuzz_${NAME})
    target_link_libraries(fuzz_${NAME} PRIVATE godwit_warnings ${ARG_DEPENDS} godwit_sanitizers)
    target_link_options(fuzz_${NAME} PRIVATE -fsanitize=fuzzer)
    # The seeds once, and then as many seconds of search as a test run can afford; CONTRIBUTING names the long run.
    add_test(NAME "fuzz ${NAME}" COMMAND "${CMAKE_SOURCE_DIR}/tests/fuzz/run" $<TARGET_FILE:fuzz_${NAME}>
      "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS}")
    set_tests_properties("fuzz ${NAME}" PROPERTIES LABELS "fuzz" TIMEOUT 300)
  endif()
endfunction()

# Adds every folder below the calling one that has a CMakeLists.txt of its own, in the order of their names.
macro(godwit_add_folders)
  file(GLOB _lists CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*/CMakeLists.txt")
  list(SORT _lists)
  foreach(_list IN LISTS _lists)
    get_filename_component(_folder "${_list}" DIRECTORY)
    add_subdirectory("${_folder}")
  endforeach()
endmacro()

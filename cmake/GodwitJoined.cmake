# Sources compiled together, several in one unit, so that what they all include is read once: half of the time of a build.
# GODWIT_JOINED says which: ALL (the sanitizer builds), TESTS (release: that each source and header is compiled alone there proves
# that it includes what it uses) or NONE.
#
# A test file becomes a namespace of its own, so that files may have fixtures of the same name. That needs its includes to be
# read before: they are copied to the top of the unit by cmake/join_tests.cmake, whenever one of the files has changed.
# Other sources share their unnamed namespaces; one whose names others have too is listed as APART.
set(GODWIT_JOINED TESTS CACHE STRING "What is compiled as parts of larger units: ALL, TESTS or NONE")

# Files in a unit: more make the build's end wait for one processor, and an edit for all of them.
set(godwit_joined_sources 5)

# godwit_join(RESULT NAME KIND source ...): the sources to compile instead. KIND is TESTS or SOURCES; NAME is the target's.
# Sources are absolute or relative to the calling folder.
function(godwit_join result name kind)
  list(LENGTH ARGN left)
  if(left LESS 2 OR NOT (GODWIT_JOINED STREQUAL "ALL" OR GODWIT_JOINED STREQUAL kind))
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  math(EXPR batches "(${left} + ${godwit_joined_sources} - 1) / ${godwit_joined_sources}")
  set(units "")
  set(first 0)
  while(batches GREATER 0)
    math(EXPR size "(${left} + ${batches} - 1) / ${batches}") # all of almost the same size
    list(SUBLIST ARGN ${first} ${size} batch)
    set(sources "")
    foreach(source IN LISTS batch)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
      list(APPEND sources "${source}")
    endforeach()
    set(unit "${CMAKE_BINARY_DIR}/joined/${name}_${batches}.cpp")
    if(kind STREQUAL "TESTS")
      add_custom_command(OUTPUT "${unit}"
        COMMAND ${CMAKE_COMMAND} "-DUNIT=${unit}" "-DROOT=${CMAKE_SOURCE_DIR}" "-DSOURCES=${sources}"
          -P "${CMAKE_SOURCE_DIR}/cmake/join_tests.cmake"
        DEPENDS ${sources} "${CMAKE_SOURCE_DIR}/cmake/join_tests.cmake"
        COMMENT "Joining ${size} sources of ${name}" VERBATIM)
    else()
      set(text "\n")
      foreach(source IN LISTS sources)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE path)
        string(APPEND text "#include \"${path}\"\n")
      endforeach()
      file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}" @ONLY)
    endif()
    # Tests shadow what godwit has, as seen from their namespaces; clang also finds that neighbours shadow each other.
    if(kind STREQUAL "TESTS" OR CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      set_source_files_properties("${unit}" PROPERTIES COMPILE_OPTIONS "-Wno-shadow")
    endif()
    list(APPEND units "${unit}")
    math(EXPR first "${first} + ${size}")
    math(EXPR left "${left} - ${size}")
    math(EXPR batches "${batches} - 1")
  endwhile()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

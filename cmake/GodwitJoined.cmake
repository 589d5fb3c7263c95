# Sources compiled together, several in one unit, so that what they all include is read once: half of the time of a sanitizer
# build. Release builds compile each source alone, which proves that it includes what it uses and says what it shadows.
#
# A test file becomes a namespace of its own, so that files may have fixtures of the same name. That needs its includes to be
# read before: they are copied to the top of the unit by cmake/join_sources.cmake, whenever one of the files has changed.
# Other sources share their unnamed namespaces; one whose names others have too is listed as APART.
option(GODWIT_JOINED "Compile several sources as one" OFF)

# Files in a unit: more make the build's end wait for one processor, and an edit for all of them.
set(godwit_joined_sources 5)

# godwit_join(RESULT NAME KIND source ...): the sources to compile instead. KIND is TESTS or SOURCES; NAME is the target's.
# Sources are absolute or relative to the calling folder.
function(godwit_join result name kind)
  list(LENGTH ARGN left)
  if(NOT GODWIT_JOINED OR left LESS 2)
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
    add_custom_command(OUTPUT "${unit}"
      COMMAND ${CMAKE_COMMAND} "-DUNIT=${unit}" "-DROOT=${CMAKE_SOURCE_DIR}" "-DKIND=${kind}" "-DSOURCES=${sources}"
        -P "${CMAKE_SOURCE_DIR}/cmake/join_sources.cmake"
      DEPENDS ${sources} "${CMAKE_SOURCE_DIR}/cmake/join_sources.cmake"
      COMMENT "Joining ${size} sources of ${name}" VERBATIM)
    # Files that stand beside each other shadow what the others have.
    set_source_files_properties("${unit}" PROPERTIES COMPILE_OPTIONS "-Wno-shadow")
    list(APPEND units "${unit}")
    math(EXPR first "${first} + ${size}")
    math(EXPR left "${left} - ${size}")
    math(EXPR batches "${batches} - 1")
  endwhile()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

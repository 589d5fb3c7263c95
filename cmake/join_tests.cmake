# Writes UNIT, which includes the test files SOURCES of the tree at ROOT, as cmake/GodwitJoined.cmake says.
set(includes "")
set(text "")
set(number 0)
foreach(source IN LISTS SOURCES)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE path) # so that checkouts share a compiler's cache
  file(STRINGS "${source}" lines REGEX "^#include ")
  list(APPEND includes ${lines})
  string(APPEND text "namespace joined_${number} {\n#include \"${path}\"\n}\n")
  math(EXPR number "${number} + 1")
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "\n" includes)
file(WRITE "${UNIT}" "${includes}\n${text}")

# tracehint-tag: sets the hints of one task's files (docs/reference/engines.md). Plain C, no
# libraries; included by the top CMakeLists.txt.
add_executable(tracehint-tag ${CMAKE_CURRENT_LIST_DIR}/tracehint-tag.c)
target_compile_options(tracehint-tag PRIVATE -std=gnu11 -O2 -Wall -Wextra -Werror)
if(SKBUILD)
  install(TARGETS tracehint-tag RUNTIME DESTINATION tracehint/adapters/tag/bin)
endif()

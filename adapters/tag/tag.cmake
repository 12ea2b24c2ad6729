# tracehint-tag: sets the hints of one task's files (docs/reference/engines.md). Plain C, no
# libraries; included by the top CMakeLists.txt.
set(TAG_DIR ${CMAKE_CURRENT_LIST_DIR})
add_executable(tracehint-tag ${TAG_DIR}/tracehint-tag.c ${TAG_DIR}/table.c ${TAG_DIR}/beneath.c
               ${TAG_DIR}/attribute.c ${TAG_DIR}/mfs_class.c ${TAG_DIR}/command.c
               ${TAG_DIR}/script.c ${TAG_DIR}/undo.c ${TAG_DIR}/journal.c ${TAG_DIR}/make.c)
target_compile_options(tracehint-tag PRIVATE -std=gnu11 -O2 ${C_WARNINGS})
install(TARGETS tracehint-tag RUNTIME DESTINATION ${PACKAGE}adapters/tag/bin)

# tracehint-fanotify: sets hints where the kernel asks before opens (root). The rule table, its
# matcher and the journal are those of the preload library; included by the top CMakeLists.txt.
set(FANOTIFY_DIR ${CMAKE_CURRENT_LIST_DIR})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(HINTER_DIR ${FANOTIFY_DIR}/../../collectors/preload/tag)
  file(GLOB fanotify_sources ${FANOTIFY_DIR}/*.c)
  add_executable(tracehint-fanotify ${fanotify_sources}
    ${HINTER_DIR}/class.c ${HINTER_DIR}/fit.c ${HINTER_DIR}/hinter.c ${HINTER_DIR}/journal.c
    ${HINTER_DIR}/maker.c ${HINTER_DIR}/store.c ${HINTER_DIR}/table.c ${HINTER_DIR}/value.c
    ${HINTER_DIR}/word.c)
  target_compile_options(tracehint-fanotify PRIVATE -std=gnu11 -O2 -Wall -Wextra -Werror)
  find_package(Threads REQUIRED)
  target_link_libraries(tracehint-fanotify PRIVATE Threads::Threads)
  if(SKBUILD)
    install(TARGETS tracehint-fanotify RUNTIME DESTINATION tracehint/adapters/fanotify/bin)
  endif()
endif()

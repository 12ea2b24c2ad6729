# libtracehint.so: preloaded into programs, records their calls and sets hints on files as they
# are created. Plain C without any library; included by the top CMakeLists.txt.
set(PRELOAD_DIR ${CMAKE_CURRENT_LIST_DIR})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  file(GLOB preload_sources ${PRELOAD_DIR}/*.c ${PRELOAD_DIR}/*/*.c ${PRELOAD_DIR}/*/*.S)
  add_library(tracehint SHARED ${preload_sources})
  # The hooked program's vector registers are not saved: this code must not change them.
  target_compile_options(tracehint PRIVATE -O2 -ffreestanding -fno-stack-protector
    -fcf-protection=none -fvisibility=hidden -mgeneral-regs-only
    $<$<COMPILE_LANGUAGE:C>:-std=gnu11 ${C_WARNINGS} -fno-tree-loop-distribute-patterns>)
  # Few segments: each is a mapping that every program makes and every fork copies.
  target_link_options(tracehint PRIVATE -nostdlib -Wl,-z,now -Wl,-z,noexecstack
    -Wl,-z,noseparate-code -Wl,-z,norelro -Wl,--build-id=sha1 -Wl,-e,th_interpreter
    -Wl,-T,${PRELOAD_DIR}/data.ld)
  if(NOT TRACER_SANITIZE)
    target_link_options(tracehint PRIVATE -s)
  endif()
  # executable: it is the interpreter (PT_INTERP) of copies of static programs (hook/enter.c)
  install(TARGETS tracehint LIBRARY DESTINATION ${PACKAGE}collectors/preload/bin
          PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                      WORLD_READ WORLD_EXECUTE)
endif()

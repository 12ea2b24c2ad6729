# SPDX-License-Identifier: Apache-2.0
# tracehint-rec and tracehint-join. Whatever prevents the build of the recorder is detected while
# configuring, by a trial: then the other programs are built without it, and the reason is written
# to NOT_BUILT, which `make` and `tracehint doctor` print.
set(here ${CMAKE_CURRENT_SOURCE_DIR}/collectors/ebpf)
set(NOT_BUILT ${CMAKE_CURRENT_BINARY_DIR}/not-built.txt)
set(BPF_OBJECT ${CMAKE_CURRENT_BINARY_DIR}/tracehint.bpf.o)
file(REMOVE ${NOT_BUILT})

# -DBPF_CLANG=... chooses another compiler for BPF
foreach(version RANGE 24 14 -1)
  list(APPEND versioned_clang clang-${version})
endforeach()
find_program(BPF_CLANG NAMES clang ${versioned_clang})

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(bpf_processor x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(bpf_processor arm64)
endif()
set(bpf_compile ${BPF_CLANG} -target bpf -mcpu=v3 -O2 -g ${C_WARNINGS}
  -Wno-unused-parameter -Wno-missing-prototypes -D__TARGET_ARCH_${bpf_processor}
  -c ${here}/bpf/tracehint.bpf.c -o ${BPF_OBJECT})

# The recorder's libraries: static ones if they can be linked (libelf.a of some distributions is
# incomplete), else shared ones.
set(bpf_libraries "-lbpf -lelf -lz")
if(TRACER_STATIC AND NOT TRACER_SANITIZE)
  list(PREPEND bpf_libraries "-static -s -lbpf -lelf -lz" "-static -s -lbpf -lelf -lzstd -lz")
endif()
# Needs libbpf 1.0, the oldest suitable version: it can read 64-bit enumerations.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/trial.c "#include <bpf/btf.h>\n#include <bpf/libbpf.h>\n"
  "int main(void)\n{\n\treturn bpf_object__open_mem(0, 0, 0) != 0 && btf__add_enum64(0, 0, 0, 0);\n}\n")

# first_error(variable text): the first line of a compiler's or linker's output that is an error
function(first_error variable text)
  string(REGEX MATCH "[^\n]*(error:|undefined reference|cannot find)[^\n]*" line "${text}")
  set(${variable} "${line}" PARENT_SCOPE)
endfunction()

# try_tracer(problem): why the recorder cannot be built here, empty when it can; sets BPF_LINK
function(try_tracer problem)
  set(${problem} "" PARENT_SCOPE)
  if(NOT bpf_processor)
    set(${problem} "it does not support the processor ${CMAKE_SYSTEM_PROCESSOR}" PARENT_SCOPE)
    return()
  endif()
  foreach(libraries ${bpf_libraries})
    separate_arguments(libraries UNIX_COMMAND ${libraries})
    try_compile(links ${CMAKE_CURRENT_BINARY_DIR}/trial ${CMAKE_CURRENT_BINARY_DIR}/trial.c
      LINK_LIBRARIES ${libraries} OUTPUT_VARIABLE output)
    if(links)
      set(BPF_LINK ${libraries} PARENT_SCOPE)
      break()
    endif()
  endforeach()
  if(NOT links)
    first_error(line "${output}")
    set(${problem} "libbpf 1.0 or later cannot be linked (${line})" PARENT_SCOPE)
    return()
  endif()
  if(NOT BPF_CLANG)
    set(${problem} "clang is missing" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${bpf_compile} RESULT_VARIABLE failed ERROR_VARIABLE output)
  if(failed)
    first_error(line "${output}")
    set(${problem} "${BPF_CLANG} does not compile its BPF part (${line})" PARENT_SCOPE)
  endif()
endfunction()

try_tracer(problem)
if(problem)
  set(problem "Built without the eBPF collector: ${problem}")
  if(WITH_BPF STREQUAL "ON")
    message(FATAL_ERROR "${problem}")
  endif()
  message(STATUS "${problem}")
  file(WRITE ${NOT_BUILT} "${problem}\n")
  install(FILES ${NOT_BUILT} DESTINATION ${PACKAGE}collectors/ebpf/bin)
  return()
endif()

file(GLOB bpf_headers ${here}/bpf/*.h ${here}/*.h)
add_custom_command(OUTPUT ${BPF_OBJECT} COMMAND ${bpf_compile}
  DEPENDS ${here}/bpf/tracehint.bpf.c ${bpf_headers} VERBATIM)

file(GLOB rec_sources ${here}/rec/*.c ${here}/rec/*.S)
list(REMOVE_ITEM rec_sources ${here}/rec/join.c)
add_executable(tracehint-rec ${rec_sources})
set_source_files_properties(${here}/rec/tracehint_bpf.S PROPERTIES
  OBJECT_DEPENDS ${BPF_OBJECT} COMPILE_OPTIONS "-DTRACEHINT_BPF_OBJECT=\"${BPF_OBJECT}\"")
target_compile_options(tracehint-rec PRIVATE
  $<$<COMPILE_LANGUAGE:C>:-std=gnu11 -O2 -g ${C_WARNINGS}>)
target_link_libraries(tracehint-rec PRIVATE ${BPF_LINK})
if(TRACER_SANITIZE)
  target_compile_options(tracehint-rec PRIVATE -fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(tracehint-rec PRIVATE -fsanitize=address,undefined)
endif()

# Needs no privileges: a task asks the node's recorder to follow it.
add_executable(tracehint-join ${here}/rec/join.c)
target_compile_options(tracehint-join PRIVATE -std=gnu11 -O2 ${C_WARNINGS})

install(TARGETS tracehint-rec tracehint-join RUNTIME DESTINATION ${PACKAGE}collectors/ebpf/bin)

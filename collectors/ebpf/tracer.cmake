# SPDX-License-Identifier: Apache-2.0
set(here ${CMAKE_CURRENT_SOURCE_DIR}/collectors/ebpf)

# -DBPF_CLANG=... chooses another compiler for BPF
find_program(BPF_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
find_path(BPF_INCLUDE bpf/libbpf.h)
find_library(BPF_LIB NAMES libbpf.a bpf)
find_library(ELF_LIB NAMES libelf.a elf)
find_library(Z_LIB NAMES libz.a z)

set(missing "")
foreach(need BPF_CLANG BPF_INCLUDE BPF_LIB ELF_LIB Z_LIB)
  if(NOT ${need})
    list(APPEND missing ${need})
  endif()
endforeach()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND missing "an x86-64 machine")
endif()
# libbpf before 1.0 cannot read the type information of the kernels that are supported (6.1).
if(BPF_INCLUDE AND NOT EXISTS ${BPF_INCLUDE}/bpf/libbpf_version.h)
  list(APPEND missing "libbpf 1.0")
elseif(BPF_INCLUDE)
  file(STRINGS ${BPF_INCLUDE}/bpf/libbpf_version.h version REGEX "LIBBPF_MAJOR_VERSION")
  if(NOT version MATCHES "LIBBPF_MAJOR_VERSION [1-9]")
    list(APPEND missing "libbpf 1.0")
  endif()
endif()
if(missing)
  set(remedy "apt install clang libbpf-dev libelf-dev zlib1g-dev (Debian 12, Ubuntu 24.04 or later)")
  if(WITH_BPF STREQUAL "ON")
    message(FATAL_ERROR "The tracer cannot be built, missing: ${missing}. Try: ${remedy}")
  endif()
  message(STATUS "Without the eBPF tracer, missing: ${missing}. Try: ${remedy}")
  return()
endif()

# bpf_object(name source headers...): compile for BPF with debug information for relocation
function(bpf_object name source)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror
      -Wno-unused-parameter -Wno-missing-prototypes -D__TARGET_ARCH_x86
      -I${BPF_INCLUDE} -c ${source} -o ${object}
    DEPENDS ${source} ${ARGN} VERBATIM)
  set(${name}_object ${object} PARENT_SCOPE)
endfunction()

file(GLOB bpf_headers ${here}/bpf/*.h ${here}/*.h)
bpf_object(tracehint ${here}/bpf/tracehint.bpf.c ${bpf_headers})

set(rec_sources main options stamps launch follow proctree node tracer config programs
  types types_part collect sweep execs spool resolve calls privilege)
list(TRANSFORM rec_sources REPLACE "(.+)" "${here}/rec/\\1.c")
add_executable(tracehint-rec ${rec_sources} ${here}/rec/tracehint_bpf.S)
set_source_files_properties(${here}/rec/tracehint_bpf.S PROPERTIES
  OBJECT_DEPENDS ${tracehint_object}
  COMPILE_OPTIONS "-DTRACEHINT_BPF_OBJECT=\"${tracehint_object}\"")
target_include_directories(tracehint-rec PRIVATE ${BPF_INCLUDE})
target_compile_options(tracehint-rec PRIVATE
  $<$<COMPILE_LANGUAGE:C>:-std=gnu11 -O2 -g -Wall -Wextra -Werror>)
target_link_libraries(tracehint-rec PRIVATE ${BPF_LIB} ${ELF_LIB} ${Z_LIB})
if(TRACER_SANITIZE)
  target_compile_options(tracehint-rec PRIVATE -fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(tracehint-rec PRIVATE -fsanitize=address,undefined)
elseif(TRACER_STATIC AND BPF_LIB MATCHES "\\.a$" AND ELF_LIB MATCHES "\\.a$" AND Z_LIB MATCHES "\\.a$")
  target_link_options(tracehint-rec PRIVATE -static -s)
endif()

# Needs no privileges: a task asks the node's recorder to follow it.
add_executable(tracehint-join ${here}/rec/join.c)
target_compile_options(tracehint-join PRIVATE -std=gnu11 -O2 -Wall -Wextra -Werror)

if(SKBUILD)
  install(TARGETS tracehint-rec tracehint-join RUNTIME DESTINATION tracehint/collectors/ebpf/bin)
endif()

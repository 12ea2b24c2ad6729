# tracehint-sim: the engine of `tracehint predict` (docs/explanation/predict.md). Plain C, no
# libraries; included by the top CMakeLists.txt.
set(SIM_DIR ${CMAKE_CURRENT_LIST_DIR}/engine)
add_executable(tracehint-sim ${SIM_DIR}/tracehint-sim.c ${SIM_DIR}/cache.c ${SIM_DIR}/fluid.c
               ${SIM_DIR}/heap.c ${SIM_DIR}/input.c ${SIM_DIR}/join.c
               ${SIM_DIR}/operation.c ${SIM_DIR}/output.c
               ${SIM_DIR}/place.c ${SIM_DIR}/processors.c ${SIM_DIR}/run.c ${SIM_DIR}/schedule.c ${SIM_DIR}/seen.c
               ${SIM_DIR}/share.c ${SIM_DIR}/transfer.c)
target_compile_options(tracehint-sim PRIVATE -std=gnu11 -O2 ${C_WARNINGS})
install(TARGETS tracehint-sim RUNTIME DESTINATION ${PACKAGE}analyzer/predict/bin)

# Installs Volta (static or shared) into a scratch prefix, then configures, builds and runs the consumer project against it.
# The build under test serves its own kind; the other kind is built beside it, mostly out of the compiler cache.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(scratch ${build}-package-${kind})
set(common -G ${generator} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_BUILD_TYPE=Release)
set(wanted OFF)
if(kind STREQUAL "shared")
  set(wanted ON)
endif()

file(REMOVE_RECURSE ${scratch}/prefix ${scratch}/consumer)
if(wanted STREQUAL shared_build)
  set(library ${build})
else()
  set(library ${scratch})
  run(${CMAKE_COMMAND} -S ${source} -B ${library} ${common} -D BUILD_SHARED_LIBS=${wanted} -D VOLTA_CUDA=${cuda}
      -D VOLTA_BUILD_TESTS=OFF -D VOLTA_BUILD_EXAMPLES=OFF -D VOLTA_BUILD_BENCH=OFF)
  run(${CMAKE_COMMAND} --build ${library} --parallel 2)
endif()
run(${CMAKE_COMMAND} --install ${library} --prefix ${scratch}/prefix)
run(${CMAKE_COMMAND} -S ${source}/tests/consumer -B ${scratch}/consumer ${common} -D CMAKE_PREFIX_PATH=${scratch}/prefix)
run(${CMAKE_COMMAND} --build ${scratch}/consumer)
run(${ctest} --test-dir ${scratch}/consumer --output-on-failure)

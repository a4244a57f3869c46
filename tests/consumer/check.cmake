# Installs Volta (static or shared) into a scratch prefix, then configures, builds and runs the consumer project against it.
# The build under test serves its own kind; the other kind is built beside it with its settings, so mostly out of the compiler
# cache.
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
  string(REPLACE "," ";" levels "${levels}")
  file(WRITE ${scratch}/levels.cmake "set(VOLTA_ISA_LEVELS \"${levels}\" CACHE STRING \"\")\n")
  run(${CMAKE_COMMAND} -C ${scratch}/levels.cmake -S ${source} -B ${library} ${common}
      -D BUILD_SHARED_LIBS=${wanted} -D VOLTA_CUDA=${cuda} -D VOLTA_QUICK_BUILD=${quick}
      -D VOLTA_BUILD_TESTS=OFF -D VOLTA_BUILD_EXAMPLES=OFF -D VOLTA_BUILD_APPS=OFF -D VOLTA_BUILD_BENCH=OFF)
  execute_process(COMMAND ${source}/tools/jobs OUTPUT_VARIABLE jobs OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  run(${CMAKE_COMMAND} --build ${library} --parallel ${jobs})
endif()
run(${CMAKE_COMMAND} --install ${library} --prefix ${scratch}/prefix)
run(${CMAKE_COMMAND} -S ${source}/tests/consumer -B ${scratch}/consumer ${common} -D CMAKE_PREFIX_PATH=${scratch}/prefix)
run(${CMAKE_COMMAND} --build ${scratch}/consumer)
run(${ctest} --test-dir ${scratch}/consumer --output-on-failure)

# The same program without CMake.
find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE file ${scratch}/prefix/*/volta.pc)
  get_filename_component(folder ${file} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND ${pkg_config} --cflags --libs volta OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  get_filename_component(libraries ${folder} DIRECTORY)
  run(${compiler} -std=c++20 ${source}/tests/contract/01_tensors.cpp ${flags} -Wl,-rpath,${libraries} -o ${scratch}/by_hand)
  run(${scratch}/by_hand)
endif()
foreach(file share/volta/gdb/volta.py share/volta/models/gpt.h include/volta/volta.h)
  if(NOT EXISTS ${scratch}/prefix/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

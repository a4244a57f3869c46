# The op generator: a small program, free of the library, that writes the headers derived from the op lists at build time.
set(VOLTA_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${VOLTA_GENERATED_DIR}/volta)

file(GLOB volta_opgen_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/opgen/*.cpp)
if(volta_opgen_sources)
  add_executable(volta_opgen ${volta_opgen_sources})
  target_link_libraries(volta_opgen PRIVATE volta_settings volta_warnings)
  set(volta_generated ${VOLTA_GENERATED_DIR}/volta/ops.h ${VOLTA_GENERATED_DIR}/volta/methods.h
                      ${VOLTA_GENERATED_DIR}/volta/method_bodies.h ${VOLTA_GENERATED_DIR}/volta/plain.h
                      ${VOLTA_GENERATED_DIR}/volta/cast_bodies.h ${VOLTA_GENERATED_DIR}/op_calls.inc
                      ${VOLTA_GENERATED_DIR}/ops.md ${VOLTA_GENERATED_DIR}/ops.json)
  add_custom_command(OUTPUT ${volta_generated} COMMAND volta_opgen ${VOLTA_GENERATED_DIR} DEPENDS volta_opgen
                     COMMENT "Generating the op headers" VERBATIM)
  add_custom_target(volta_generate DEPENDS ${volta_generated})
endif()

function(volta_depend_on_opgen target)
  if(TARGET volta_generate)
    add_dependencies(${target} volta_generate)
  endif()
endfunction()

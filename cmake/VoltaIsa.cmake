# The vector kernels, src/backend/cpu/<family>/kernels/*.cpp, compiled once per instruction-set level; the library picks one
# at start. Kernels in a folder named after a level (gemm/amx) are compiled for that level alone.
# Each build gets VOLTA_ISA=<level>, a name fit for a namespace; the library gets VOLTA_HAVE_ISA_<LEVEL> per level.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(volta_known_levels baseline v3 v4 amx)
  set(volta_march_baseline -march=x86-64-v2)
  set(volta_march_v3 -march=x86-64-v3)
  set(volta_march_v4 -march=x86-64-v4)
  set(volta_march_amx -march=x86-64-v4 -mamx-tile -mamx-bf16)
else()
  set(volta_known_levels baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(volta_known_levels baseline bfloat)
    set(volta_march_baseline -march=armv8-a)
    set(volta_march_bfloat -march=armv8.2-a+bf16)
  endif()
endif()
set(VOLTA_ISA_LEVELS "${volta_known_levels}" CACHE STRING "Instruction-set levels to build kernels for; baseline always belongs to them")

if(NOT "baseline" IN_LIST VOLTA_ISA_LEVELS)  # what every other level falls back to
  message(STATUS "Volta: VOLTA_ISA_LEVELS=${VOLTA_ISA_LEVELS} needs baseline too; added")
  list(PREPEND VOLTA_ISA_LEVELS baseline)
endif()

function(volta_add_isa_objects library)
  set(families ${PROJECT_SOURCE_DIR}/src/backend/cpu)
  file(GLOB sources CONFIGURE_DEPENDS ${families}/*/kernels/*.cpp)
  # Register tiles: scheduling before register allocation spills the accumulators of the micro-kernel.
  file(GLOB tiled CONFIGURE_DEPENDS ${families}/gemm/*/*.cpp ${families}/conv/kernels/*.cpp ${families}/attention/kernels/*.cpp
                                    ${families}/recurrent/kernels/*.cpp)
  set_property(SOURCE ${tiled} APPEND PROPERTY COMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
  # Arguments stored as vectors and loaded in parts stall on store forwarding.
  file(GLOB products CONFIGURE_DEPENDS ${families}/gemm/kernels/*.cpp)
  set_property(SOURCE ${products} APPEND PROPERTY COMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-fno-tree-slp-vectorize>)

  set(optimise $<IF:$<CONFIG:Debug>,-O2,-O3>)
  if(VOLTA_SANITIZE OR VOLTA_COVERAGE)
    set(optimise -O1)
  endif()
  foreach(level IN LISTS VOLTA_ISA_LEVELS)
    if(NOT level IN_LIST volta_known_levels)
      message(FATAL_ERROR "VOLTA_ISA_LEVELS: '${level}' is not one of ${volta_known_levels}")
    endif()
    file(GLOB level_sources CONFIGURE_DEPENDS ${families}/*/${level}/*.cpp)
    if(NOT level_sources)
      set(level_sources ${sources})
    endif()
    volta_add_objects(volta_isa_${level} ${level_sources})
    foreach(object IN LISTS volta_objects)
      target_link_libraries(${object} PRIVATE volta_settings volta_warnings)
      target_include_directories(${object} PRIVATE ${VOLTA_GENERATED_DIR})
      target_compile_definitions(${object} PRIVATE VOLTA_ISA=${level})
      # A product and its sum are one multiply-add in every tile, or bits would depend on the tile: newer GCC would part them
      # where there is a single chain. The notes on parameter passing concern callers built by older compilers; kernels call
      # only each other.
      target_compile_options(${object} PRIVATE ${optimise} ${volta_march_${level}} -ffp-contract=fast -Wno-psabi
                                               $<$<CXX_COMPILER_ID:GNU>:--param=avoid-fma-max-bits=0>)
      volta_depend_on_opgen(${object})
      target_sources(${library} PRIVATE $<TARGET_OBJECTS:${object}>)
    endforeach()
    string(TOUPPER ${level} upper)
    target_compile_definitions(${library} PRIVATE VOLTA_HAVE_ISA_${upper})
  endforeach()
endfunction()

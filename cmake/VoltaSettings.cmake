# Compiler settings for Volta's own targets: floating point rules, warnings, sanitizers, coverage, ccache.
find_package(Threads REQUIRED)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(VOLTA_CCACHE ccache)
  if(VOLTA_CCACHE)
    foreach(language CXX CUDA)
      if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/compile)
      endif()
    endforeach()
  endif()
endif()

if(VOLTA_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${VOLTA_SANITIZE}> $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>)
  add_link_options(-fsanitize=${VOLTA_SANITIZE})
endif()
if(VOLTA_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--coverage> $<$<COMPILE_LANGUAGE:CXX>:-fprofile-update=atomic>)
  add_link_options(--coverage)
endif()

add_library(volta_warnings INTERFACE)
target_compile_options(volta_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;$<$<BOOL:${VOLTA_WERROR}>:-Werror>>)

# For programs that call ops for their errors or their time alone. Linked last: -Wall turns the warning on with clang.
add_library(volta_results_unused INTERFACE)
target_compile_options(volta_results_unused INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unused-result>)

# What every translation unit of the library shares. No -ffast-math: NaN, infinities and signed zeros keep their meaning.
add_library(volta_settings INTERFACE)
target_compile_features(volta_settings INTERFACE cxx_std_20)
target_include_directories(volta_settings INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(volta_settings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fno-math-errno;-fno-trapping-math>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-psabi>)  # notes for callers built by GCC 9

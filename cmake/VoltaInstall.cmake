# Installation: the library, its headers, the package files behind find_package(volta) and pkg-config, and what gdb reads.
include(CMakePackageConfigHelpers)
set(volta_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/volta)

install(TARGETS volta volta_models EXPORT voltaTargets)
if(volta_with_images)
  install(TARGETS volta_images EXPORT voltaTargets)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/volta ${VOLTA_GENERATED_DIR}/volta
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/volta FILES_MATCHING PATTERN "*.h")
install(EXPORT voltaTargets NAMESPACE volta:: DESTINATION ${volta_package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/voltaConfig.cmake.in ${PROJECT_BINARY_DIR}/voltaConfig.cmake
                              INSTALL_DESTINATION ${volta_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/voltaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/voltaConfig.cmake ${PROJECT_BINARY_DIR}/voltaConfigVersion.cmake
        DESTINATION ${volta_package_dir})

# For builds without CMake: pkg-config --cflags --libs volta. A static library passes on what it links.
set(volta_pc_libs -pthread)
if(NOT BUILD_SHARED_LIBS)
  if(volta_with_cuda)
    list(APPEND volta_pc_libs -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt)
  endif()
  if(VOLTA_BLAS)
    list(APPEND volta_pc_libs ${BLAS_LIBRARIES})
  endif()
endif()
list(JOIN volta_pc_libs " " volta_pc_libs)
file(RELATIVE_PATH volta_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" volta_pc_up "${volta_pc_up}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/volta.pc.in ${PROJECT_BINARY_DIR}/volta.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/volta.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/volta.py DESTINATION ${CMAKE_INSTALL_DATADIR}/volta/gdb)

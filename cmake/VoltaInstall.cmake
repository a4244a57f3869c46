# Installation: the library, its headers, and the package files behind find_package(volta).
include(CMakePackageConfigHelpers)
set(volta_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/volta)

install(TARGETS volta volta_models EXPORT voltaTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/volta ${VOLTA_GENERATED_DIR}/volta
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/volta FILES_MATCHING PATTERN "*.h")
install(EXPORT voltaTargets NAMESPACE volta:: DESTINATION ${volta_package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/voltaConfig.cmake.in ${PROJECT_BINARY_DIR}/voltaConfig.cmake
                              INSTALL_DESTINATION ${volta_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/voltaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/voltaConfig.cmake ${PROJECT_BINARY_DIR}/voltaConfigVersion.cmake
        DESTINATION ${volta_package_dir})

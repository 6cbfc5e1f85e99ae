# cmake/install.cmake - headers, libraries, the CMake package, the pkg-config file and the tool.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kassette)
install(TARGETS kassette EXPORT kassetteTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT library NAMELINK_COMPONENT development)
if(TARGET kassette_cuda)
  install(TARGETS kassette_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
endif()
if(TARGET kassette_nccl)
  install(TARGETS kassette_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
endif()
if(TARGET kassette_mpi)
  install(TARGETS kassette_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()
install(EXPORT kassetteTargets NAMESPACE kassette:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kassetteConfig.cmake.in
  ${PROJECT_BINARY_DIR}/kassetteConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kassetteConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kassetteConfig.cmake
  ${PROJECT_BINARY_DIR}/kassetteConfigVersion.cmake DESTINATION ${package_dir} COMPONENT development)
file(RELATIVE_PATH KASSETTE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/kassette.pc.in ${PROJECT_BINARY_DIR}/kassette.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kassette.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(DIRECTORY ${KASSETTE_INCLUDE}/kassette DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/kassette DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)

# <kassette/cling.h> names folders, so it is written for the build and once more when it is known where it is installed.
set(KASSETTE_CLING_INCLUDE ${KASSETTE_INCLUDE})
set(KASSETTE_CLING_LIBRARY ${PROJECT_BINARY_DIR}/lib)
configure_file(${CMAKE_CURRENT_LIST_DIR}/cling.h.in ${KASSETTE_BUILD_INCLUDE}/kassette/cling.h @ONLY)
install(CODE "
  set(KASSETTE_CLING_INCLUDE \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
  set(KASSETTE_CLING_LIBRARY \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
  configure_file(\"${CMAKE_CURRENT_LIST_DIR}/cling.h.in\"
    \"\$ENV{DESTDIR}\${KASSETTE_CLING_INCLUDE}/kassette/cling.h\" @ONLY)
" COMPONENT development)

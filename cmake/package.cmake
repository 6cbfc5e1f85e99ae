# cmake/package.cmake - `cpack` in the build folder: Debian packages of what is installed, one a component.
#
#   libkassette0       the library            libkassette-cuda0   the CUDA device library, where nvcc built one
#   libkassette-dev    headers, CMake, .pc    kassette            the tool; brings the compiler
#   libkassette-mpi0   jobs of several ranks, where MPI was found
#   kassette-repl      the prompt, where clang's interpreter library was found
#
# Whoever builds packages for others puts a name and address into CPACK_PACKAGE_CONTACT.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "kassette's maintainers <maintainers@kassette.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)

# Packages of one distribution do not suit another, so its name is a part of the version: 0.1.0-1~deb12.
set(release 1)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release lines REGEX "^(ID|VERSION_ID)=")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^([A-Z_]+)=\"?([^\"]*)\"?$" "\\1;\\2" pair "${line}")
    list(GET pair 0 key)
    list(GET pair 1 os_${key})
  endforeach()
  string(REPLACE debian deb os_ID "${os_ID}")
  set(release "1~${os_ID}${os_VERSION_ID}")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${release})
set(full_version ${PROJECT_VERSION}-${release})

set(CPACK_COMPONENTS_ALL library development tools)
# What is linked is found by dpkg-shlibdeps; what is below is not linked, or is ours.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(library libkassette${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS libopenblas0-pthread)   # the flavour that the library looks for first
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkassette-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${full_version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME kassette)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libkassette-dev (= ${full_version}), g++")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library. Kernels for SSE2, AVX2 and AVX-512 are picked at run time.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The headers, with files for CMake's find_package and for pkg-config.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command kassette, which compiles C++ scripts against the library and runs them.")
if(TARGET kassette_cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME libkassette-cuda${PROJECT_VERSION_MAJOR})
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${library} (= ${full_version})")
  set(CPACK_COMPONENT_CUDA_DESCRIPTION "CUDA devices. Needs NVIDIA's driver and cuBLAS where the program runs.")
endif()

if(TARGET kassette_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME libkassette-mpi${PROJECT_VERSION_MAJOR})
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${library} (= ${full_version})")
  set(CPACK_COMPONENT_MPI_DESCRIPTION "Jobs of several ranks, by MPI.")
endif()
if(TARGET kassette_repl)
  list(APPEND CPACK_COMPONENTS_ALL repl)
  set(CPACK_DEBIAN_REPL_PACKAGE_NAME kassette-repl)
  set(CPACK_DEBIAN_REPL_PACKAGE_DEPENDS "kassette (= ${full_version}), libclang-common-19-dev")
  set(CPACK_COMPONENT_REPL_DESCRIPTION "The prompt of the command kassette: each line of C++ runs at once.")
endif()

# The `package` target and cpack take what is built, rather than building tests and benchmarks first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

foreach(package IN ITEMS LIBRARY DEVELOPMENT TOOLS CUDA REPL)
  if(DEFINED CPACK_DEBIAN_${package}_PACKAGE_NAME)
    string(TOLOWER ${package} component)
    install(FILES ${PROJECT_SOURCE_DIR}/cmake/copyright COMPONENT ${component}
      DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${package}_PACKAGE_NAME})
  endif()
endforeach()
include(CPack)

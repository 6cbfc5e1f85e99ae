# cmake/package.cmake - `cpack` in the build folder: Debian packages of what is installed, one a component.
#
#   libkassetteX.Y       the library            libkassette-cudaX.Y   the CUDA device library, where nvcc built one, and that over NCCL
#   libkassette-dev      headers, CMake, .pc    kassette              the tool; brings the compiler
#   libkassette-mpiX.Y   jobs of several ranks, where MPI was found
#   kassette-repl        the prompt, where clang's interpreter library was found
#
# X.Y is the minor release, which is the library's SONAME: programs are compiled anew for each.
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

# Packages of one distribution do not suit another, so its name is a part of the version: MAJOR.MINOR.PATCH-1~deb12.
set(release 1)
if(EXISTS ${CMAKE_SYSROOT}/etc/os-release)
  file(STRINGS ${CMAKE_SYSROOT}/etc/os-release lines REGEX "^(ID|VERSION_ID)=")
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
set(abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(library libkassette${abi})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS libopenblas0-pthread)   # the flavour that the library looks for first
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkassette-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${full_version})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME kassette)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libkassette-dev (= ${full_version}), g++")
list(JOIN KASSETTE_LEVELS ", " levels)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library, with kernels for ${levels}.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The headers, with files for CMake's find_package and for pkg-config.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command kassette, which compiles C++ scripts against the library and runs them.")

# A component that is a package of its own where its target is built.
function(kassette_deb component target package depends description)
  if(NOT TARGET ${target})
    return()
  endif()
  string(TOUPPER ${component} name)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${name}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${name}_DESCRIPTION "${description}" PARENT_SCOPE)
endfunction()
kassette_deb(cuda kassette_cuda libkassette-cuda${abi} "${library} (= ${full_version})"
  "CUDA devices. Needs NVIDIA's driver and cuBLAS where the program runs, and takes NCCL between the GPUs of several ranks.")
kassette_deb(mpi kassette_mpi libkassette-mpi${abi} "${library} (= ${full_version})" "Jobs of several ranks, by MPI.")
kassette_deb(repl kassette_repl kassette-repl "kassette (= ${full_version}), libclang-common-19-dev"
  "The prompt of the command kassette, where each line of C++ runs at once, and a kernel for notebooks of Jupyter.")
set(CPACK_DEBIAN_REPL_PACKAGE_RECOMMENDS "python3-ipykernel, jupyter-notebook")

# The `package` target and cpack take what is built, rather than building tests and benchmarks first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} name)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/copyright COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME})
endforeach()
include(CPack)

# third_party/find.cmake - finds the packages that packages.txt lists. The build asks here and so
# does the installer, so that what one counts as present the other finds.
#
# kassette_find(build) looks for the rows of a group that say `find NAME`. What is absent or too old is
# appended to KASSETTE_MISSING, by package, and to KASSETTE_MISSING_WHY, a line each.

include(CheckCXXSourceCompiles)
set(KASSETTE_TABLE ${CMAKE_CURRENT_LIST_DIR}/packages.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KASSETTE_TABLE})

# What was found once may have been removed or moved since.
get_cmake_property(variables CACHE_VARIABLES)
foreach(variable IN LISTS variables)
  get_property(type CACHE ${variable} PROPERTY TYPE)
  if(type MATCHES "PATH$" AND variable MATCHES "^(KASSETTE|ZLIB|PNG|spdlog|fmt|Catch2)_"
      AND IS_ABSOLUTE "${${variable}}" AND NOT EXISTS "${${variable}}")
    unset(${variable} CACHE)
  endif()
endforeach()

# Sets kassette_package, kassette_wanted (0 for any) and kassette_reason from the row of NAME.
macro(kassette_row name)
  file(STRINGS ${KASSETTE_TABLE} row REGEX "\\| *find ${name} *\\|")
  if(NOT row MATCHES "\\| *find ${name} *\\| *([^ ]+) *\\| *([^ ]+) *\\| *(.*)$")
    message(FATAL_ERROR "${KASSETTE_TABLE} has no row for ${name}")
  endif()
  set(kassette_package ${CMAKE_MATCH_1})
  set(kassette_wanted ${CMAKE_MATCH_2})
  string(REPLACE "\\;" ";" kassette_reason "${CMAKE_MATCH_3}")
  if(kassette_wanted STREQUAL any)
    set(kassette_wanted 0)
  endif()
endmacro()

# kassette_found(NAME condition...): the row is there if the condition holds; else kassette_instead may say what is
# there in its place.
macro(kassette_found name)
  kassette_row(${name})
  if(${ARGN})
  else()
    list(APPEND KASSETTE_MISSING ${kassette_package})
    string(APPEND KASSETTE_MISSING_WHY "  ${kassette_package} (${name}")
    if(kassette_wanted)
      string(APPEND KASSETTE_MISSING_WHY " ${kassette_wanted}")
    endif()
    string(APPEND KASSETTE_MISSING_WHY "): ${kassette_reason}${kassette_instead}\n")
  endif()
  set(kassette_instead "")
endmacro()

# kassette_header(VARIABLE NAME header "version files" "regex of the version" [options of find_path]): the first
# folder whose header is of the version wanted. The files are seen from that folder; the first that matches counts.
function(kassette_header variable name header files regex)
  kassette_row(${name})
  set(instead "")
  unset(dir)
  if(${variable})
    set(dir ${${variable}})
  endif()
  while(TRUE)
    find_path(dir ${header} ${ARGN} NO_CACHE)
    if(NOT dir)
      break()
    endif()
    set(version 0)
    foreach(file IN LISTS files)
      if(version EQUAL 0 AND EXISTS ${dir}/${file})
        file(READ ${dir}/${file} text)
        if(text MATCHES "${regex}")
          set(version ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
        endif()
      endif()
    endforeach()
    if(EXISTS ${dir}/${header} AND NOT version VERSION_LESS kassette_wanted)
      set(${variable} ${dir} CACHE PATH "Folder of ${header}" FORCE)
      mark_as_advanced(${variable})
      return()
    endif()
    if(EXISTS ${dir}/${header})
      string(APPEND instead "; ${dir}/${header} is older")
    endif()
    list(APPEND CMAKE_IGNORE_PATH ${dir})
    unset(dir)
  endwhile()
  unset(${variable} CACHE)
  set(${variable} ${variable}-NOTFOUND PARENT_SCOPE)
  set(kassette_instead "${instead}" PARENT_SCOPE)
endfunction()

macro(kassette_find_build)
  # Header-only, found by path: Debian's CMake package of xsimd 8 drags in xtl and a language standard.
  kassette_header(KASSETTE_XSIMD_INCLUDE xsimd xsimd/xsimd.hpp "xsimd/config/xsimd_config.hpp"
    "XSIMD_VERSION_MAJOR +([0-9]+).*XSIMD_VERSION_MINOR +([0-9]+)")
  kassette_found(xsimd KASSETTE_XSIMD_INCLUDE)

  # Header-only as well; one source of ours reads keras.json with it.
  kassette_header(KASSETTE_JSON_INCLUDE nlohmann_json nlohmann/json.hpp "nlohmann/json.hpp;nlohmann/detail/abi_macros.hpp"
    "define NLOHMANN_JSON_VERSION_MAJOR +([0-9]+).*define NLOHMANN_JSON_VERSION_MINOR +([0-9]+)")
  kassette_found(nlohmann_json KASSETTE_JSON_INCLUDE)

  # The pthread flavour, by preference: the OpenMP one brings libgomp's threads beside our pool. The
  # library remembers where it was, since the system-wide alternative may point at another flavour.
  # Not by cblas.h: the reference BLAS has one too, without what we call beside the products.
  kassette_header(KASSETTE_BLAS_INCLUDE OpenBLAS openblas_config.h "openblas_config.h" "OpenBLAS ([0-9]+)\\.([0-9.]+)"
    PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread openblas-pthread openblas)
  find_library(KASSETTE_BLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
  mark_as_advanced(KASSETTE_BLAS_LIBRARY)
  if(KASSETTE_BLAS_INCLUDE AND KASSETTE_BLAS_LIBRARY)
    set(CMAKE_REQUIRED_INCLUDES ${KASSETTE_BLAS_INCLUDE})
    set(CMAKE_REQUIRED_LIBRARIES ${KASSETTE_BLAS_LIBRARY})
    set(CMAKE_REQUIRED_QUIET ON)
    if(NOT KASSETTE_BLAS_TRIED STREQUAL "${KASSETTE_BLAS_INCLUDE} ${KASSETTE_BLAS_LIBRARY}")
      unset(KASSETTE_BLAS_LINKS CACHE)
    endif()
    check_cxx_source_compiles("#include <cblas.h>
      int main() { openblas_set_num_threads(1); return openblas_get_config() == nullptr; }" KASSETTE_BLAS_LINKS)
    set(KASSETTE_BLAS_TRIED "${KASSETTE_BLAS_INCLUDE} ${KASSETTE_BLAS_LIBRARY}" CACHE INTERNAL "")
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
    unset(CMAKE_REQUIRED_QUIET)
    if(NOT KASSETTE_BLAS_LINKS)
      set(kassette_instead "; no program links with ${KASSETTE_BLAS_INCLUDE}/cblas.h and ${KASSETTE_BLAS_LIBRARY}")
      unset(KASSETTE_BLAS_LINKS CACHE)
    endif()
  endif()
  kassette_found(OpenBLAS KASSETTE_BLAS_INCLUDE AND KASSETTE_BLAS_LIBRARY AND KASSETTE_BLAS_LINKS)

  kassette_row(spdlog)
  find_package(spdlog ${kassette_wanted} QUIET)
  kassette_found(spdlog spdlog_FOUND)

  # Compressed files and pictures.
  kassette_row(ZLIB)
  find_package(ZLIB ${kassette_wanted} QUIET)
  kassette_found(ZLIB ZLIB_FOUND)
  kassette_row(PNG)
  find_package(PNG ${kassette_wanted} QUIET)
  kassette_found(PNG PNG_FOUND)
endmacro()

macro(kassette_find_test)
  find_package(Catch2 QUIET)
  kassette_row(Catch2)
  kassette_found(Catch2 Catch2_FOUND AND Catch2_VERSION VERSION_GREATER_EQUAL kassette_wanted)
  kassette_header(KASSETTE_XTENSOR_INCLUDE xtensor xtensor/xarray.hpp "xtensor/xtensor_config.hpp"
    "XTENSOR_VERSION_MAJOR +([0-9]+).*XTENSOR_VERSION_MINOR +([0-9]+)")
  kassette_found(xtensor KASSETTE_XTENSOR_INCLUDE)
  kassette_header(KASSETTE_DLPACK_INCLUDE dlpack dlpack/dlpack.h "" "")
  kassette_found(dlpack KASSETTE_DLPACK_INCLUDE)
endmacro()

macro(kassette_find_mpi)
  # Without the C++ bindings that MPI has given up.
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
  kassette_row(MPI)
  kassette_found(MPI MPI_CXX_FOUND AND MPI_CXX_VERSION VERSION_GREATER_EQUAL kassette_wanted)
endmacro()

macro(kassette_find_repl)
  # By the libraries' full names: the packages have no libclang-cpp.so.
  find_path(KASSETTE_CLANG_INCLUDE clang/Interpreter/PartialTranslationUnit.h PATHS /usr/lib/llvm-19/include NO_DEFAULT_PATH)
  find_library(KASSETTE_CLANG_LIBRARY NAMES libclang-cpp.so.19.1 libclang-cpp.so PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH)
  kassette_found(clang KASSETTE_CLANG_INCLUDE AND KASSETTE_CLANG_LIBRARY)
  find_path(KASSETTE_LLVM_INCLUDE llvm/IR/Module.h PATHS /usr/lib/llvm-19/include NO_DEFAULT_PATH)
  find_library(KASSETTE_LLVM_LIBRARY NAMES libLLVM.so.19.1 libLLVM-19.so PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH)
  kassette_found(LLVM KASSETTE_LLVM_INCLUDE AND KASSETTE_LLVM_LIBRARY)
  find_path(KASSETTE_EDIT_INCLUDE histedit.h)
  find_library(KASSETTE_EDIT_LIBRARY edit)
  kassette_found(libedit KASSETTE_EDIT_INCLUDE AND KASSETTE_EDIT_LIBRARY)
  mark_as_advanced(KASSETTE_CLANG_INCLUDE KASSETTE_CLANG_LIBRARY KASSETTE_LLVM_INCLUDE KASSETTE_LLVM_LIBRARY
    KASSETTE_EDIT_INCLUDE KASSETTE_EDIT_LIBRARY)
endmacro()

# Directory scope, not a function's: find_package's variables are read by the caller.
macro(kassette_find group)
  set(KASSETTE_MISSING)
  set(KASSETTE_MISSING_WHY "")
  cmake_language(CALL kassette_find_${group})
endmacro()

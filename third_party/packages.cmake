# third_party/packages.cmake - finds what we depend on. Nothing is copied into this repository;
# install.sh beside this file lists the packages with version and reason.

# Linked by the library's objects, never seen by a consumer.
add_library(kassette_third_party INTERFACE)

if((CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    OR (CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14))
  message(FATAL_ERROR "kassette needs g++ 12 or clang 14, and ${CMAKE_CXX_COMPILER} is version ${CMAKE_CXX_COMPILER_VERSION}; "
    "install a newer one (apt-get install g++-12) and name it: CXX=g++-12")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/find.cmake)
find_package(Threads REQUIRED)
kassette_find(build)
if(KASSETTE_MISSING)
  list(JOIN KASSETTE_MISSING " " packages)
  message(FATAL_ERROR "kassette needs packages that are not here:\n${KASSETTE_MISSING_WHY}"
    "On Debian and Ubuntu: apt-get install ${packages}; elsewhere CMAKE_PREFIX_PATH may name their folders.")
endif()
get_filename_component(blas_dir ${KASSETTE_BLAS_LIBRARY} DIRECTORY)
if(NOT blas_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  set(KASSETTE_BLAS_DIR ${blas_dir})
endif()

# Links to what was chosen: /usr/include itself cannot be put before /usr/local/include, which may have an older
# xsimd, or a folder of several cblas.h before another.
set(headers ${PROJECT_BINARY_DIR}/third_party/include)
file(MAKE_DIRECTORY ${headers})
file(CREATE_LINK ${KASSETTE_XSIMD_INCLUDE}/xsimd ${headers}/xsimd SYMBOLIC)
file(CREATE_LINK ${KASSETTE_JSON_INCLUDE}/nlohmann ${headers}/nlohmann SYMBOLIC)
file(CREATE_LINK ${KASSETTE_BLAS_INCLUDE}/cblas.h ${headers}/cblas.h SYMBOLIC)
file(CREATE_LINK ${KASSETTE_BLAS_INCLUDE}/openblas_config.h ${headers}/openblas_config.h SYMBOLIC)
target_include_directories(kassette_third_party SYSTEM INTERFACE ${headers})

# Compilers search CPATH before that.
string(REPLACE ":" ";" searched "$ENV{CPATH}")
foreach(dir IN LISTS searched)
  foreach(header cblas.h xsimd/xsimd.hpp nlohmann/json.hpp spdlog/spdlog.h zlib.h png.h)
    if(dir AND EXISTS ${dir}/${header})
      message(FATAL_ERROR "CPATH puts ${dir}/${header} before what was found; unset CPATH to configure and build "
        "(CMAKE_PREFIX_PATH names folders to search)")
    endif()
  endforeach()
endforeach()
target_link_libraries(kassette_third_party INTERFACE
  ${KASSETTE_BLAS_LIBRARY} spdlog::spdlog ZLIB::ZLIB PNG::PNG Threads::Threads ${CMAKE_DL_LIBS})

# CUDA: only where nvcc is.
if(NOT KASSETTE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "KASSETTE_CUDA is \"${KASSETTE_CUDA}\"; it takes AUTO, ON or OFF")
endif()
if(NOT KASSETTE_CUDA STREQUAL OFF AND NOT KASSETTE_SANITIZE)
  find_program(KASSETTE_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
               PATH_SUFFIXES bin)
  if(KASSETTE_NVCC)
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${KASSETTE_NVCC})
    endif()
    if(NOT CMAKE_CUDA_HOST_COMPILER)
      set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${KASSETTE_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      # CMake 3.25 does not know that nvcc 12 and later take C++20.
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(KASSETTE_CUDA_FOUND ON)
    set(KASSETTE_CUDA_LIBRARY_DIR ${CUDAToolkit_LIBRARY_DIR})
    message(STATUS "CUDA ${CUDAToolkit_VERSION}: libkassette_cuda.so for ${KASSETTE_CUDA_ARCHITECTURES}")
  elseif(KASSETTE_CUDA STREQUAL ON)
    message(FATAL_ERROR "KASSETTE_CUDA is ON, and no nvcc was found")
  else()
    message(STATUS "CUDA: no nvcc found, building for the CPU alone")
  endif()
endif()

# MPI: a library of its own, loaded where several ranks run.
if(NOT KASSETTE_MPI MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "KASSETTE_MPI is \"${KASSETTE_MPI}\"; it takes AUTO, ON or OFF")
endif()
if(NOT KASSETTE_MPI STREQUAL OFF)
  kassette_find(mpi)
  list(REMOVE_ITEM KASSETTE_MISSING openmpi-bin)
  if(NOT KASSETTE_MISSING)
    set(KASSETTE_MPI_FOUND ON)
    message(STATUS "MPI ${MPI_CXX_VERSION}: libkassette_mpi.so with ${MPI_CXX_LIBRARIES}")
  elseif(KASSETTE_MPI STREQUAL ON)
    message(FATAL_ERROR "KASSETTE_MPI is ON, and MPI is not here:\n${KASSETTE_MISSING_WHY}")
  else()
    message(STATUS "MPI: not found, programs run as one rank (third_party/install.sh mpi)")
  endif()
endif()

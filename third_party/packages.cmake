# third_party/packages.cmake - finds what we depend on. Nothing is copied into this repository;
# install.sh beside this file lists the packages with version and reason.

# Linked by the library's objects, never seen by a consumer.
add_library(kassette_third_party INTERFACE)

find_package(Threads REQUIRED)
find_package(spdlog 1.9 REQUIRED)

# Header-only, found by path: Debian's CMake package of xsimd 8 drags in xtl and a language standard.
find_path(KASSETTE_XSIMD_INCLUDE xsimd/xsimd.hpp REQUIRED)

# Header-only as well; one source of ours reads keras.json with it.
find_path(KASSETTE_JSON_INCLUDE nlohmann/json.hpp REQUIRED)

# Compressed files and pictures.
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)

# The pthread flavour, by preference: the OpenMP one brings libgomp's threads beside our pool. The
# library remembers where it was, since the system-wide alternative may point at another flavour.
set(flavour openblas-pthread)
# Not cblas.h: the reference BLAS has one too, without what we call beside the products.
find_path(KASSETTE_BLAS_INCLUDE openblas_config.h
  PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/${flavour} ${flavour} openblas REQUIRED)
find_library(KASSETTE_BLAS_LIBRARY openblas PATH_SUFFIXES ${flavour} REQUIRED)
get_filename_component(blas_dir ${KASSETTE_BLAS_LIBRARY} DIRECTORY)
if(NOT blas_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  set(KASSETTE_BLAS_DIR ${blas_dir})
endif()

target_include_directories(kassette_third_party SYSTEM INTERFACE
  ${KASSETTE_XSIMD_INCLUDE} ${KASSETTE_JSON_INCLUDE} ${KASSETTE_BLAS_INCLUDE})
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

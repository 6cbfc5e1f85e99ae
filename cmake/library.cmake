# cmake/library.cmake - libkassette.so from the folders' objects, and the libraries beside it that are loaded where there is a GPU or MPI.

add_library(kassette SHARED)
add_library(kassette::kassette ALIAS kassette)
kassette_library_options(kassette)
target_compile_features(kassette INTERFACE cxx_std_17)
target_include_directories(kassette INTERFACE
  $<BUILD_INTERFACE:${KASSETTE_INCLUDE}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Calls inside the library are bound at link time. Functions only: binding data as well would give
# an exported object two addresses in programs that hold a copy relocation of it. nodelete: threads
# of ours run its code until the process ends.
target_link_options(kassette PRIVATE -Wl,-Bsymbolic-functions
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/exports.map -Wl,-z,nodelete)
set_property(TARGET kassette APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/exports.map)
if(NOT KASSETTE_SANITIZE)
  target_link_options(kassette PRIVATE -Wl,-z,defs)
endif()
set_target_properties(kassette PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
  BUILD_RPATH "${KASSETTE_BLAS_DIR}"
  INSTALL_RPATH "$ORIGIN;${KASSETTE_BLAS_DIR}")

# What the unit tests link instead of the shared library: the same objects with their private
# symbols within reach.
add_library(kassette_objects INTERFACE)
target_link_libraries(kassette_objects INTERFACE kassette_third_party)

# The sources of libkassette_cuda.so and libkassette_nccl.so, which the tests compile for the host as well, and of libkassette_mpi.so.
add_library(kassette_cuda_sources INTERFACE)
add_library(kassette_nccl_sources INTERFACE)
add_library(kassette_mpi_sources INTERFACE)

foreach(folder core devices ops autograd nn_backend)
  add_subdirectory(${folder})
endforeach()

# Flags of the device library.
function(kassette_cuda_options target)
  kassette_compile_options(${target})
  kassette_stack_options(${target})
  # -fmad=false: the same bits as the CPU, where contraction is off as well. 186: "pointless
  # comparison of unsigned integer with zero", in what is written for all dtypes at once.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false --expt-relaxed-constexpr --diag-suppress=186 -Xcompiler=-Wall,-Wextra,-ffp-contract=off>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${KASSETTE_WERROR}>>:-Werror=all-warnings>)
  set_target_properties(${target} PROPERTIES
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    CUDA_ARCHITECTURES "${KASSETTE_CUDA_ARCHITECTURES}"
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endfunction()

if(KASSETTE_CUDA_FOUND)
  add_library(kassette_cuda SHARED)
  kassette_cuda_options(kassette_cuda)
  target_compile_definitions(kassette_cuda PRIVATE KASSETTE_VERSION="${PROJECT_VERSION}")
  string(REPLACE ";" "," architectures "${KASSETTE_CUDA_ARCHITECTURES}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/devices/cuda/open.cpp PROPERTIES
    COMPILE_DEFINITIONS KASSETTE_CUDA_ARCHITECTURES="${architectures}")
  set_target_properties(kassette_cuda PROPERTIES
    BUILD_RPATH "$ORIGIN;${KASSETTE_CUDA_LIBRARY_DIR}"
    INSTALL_RPATH "$ORIGIN;${KASSETTE_CUDA_LIBRARY_DIR}")
  target_link_libraries(kassette_cuda PRIVATE kassette_cuda_sources kassette CUDA::cublas CUDA::cublasLt CUDA::cudart_static)
endif()

if(KASSETTE_NCCL_FOUND)
  add_library(kassette_nccl SHARED)
  kassette_cuda_options(kassette_nccl)
  get_filename_component(nccl_dir ${KASSETTE_NCCL_LIBRARY} DIRECTORY)
  set_target_properties(kassette_nccl PROPERTIES
    BUILD_RPATH "${nccl_dir}" INSTALL_RPATH "$ORIGIN;${nccl_dir}")
  target_include_directories(kassette_nccl SYSTEM PRIVATE ${KASSETTE_NCCL_INCLUDE})
  target_link_libraries(kassette_nccl PRIVATE kassette_nccl_sources ${KASSETTE_NCCL_LIBRARY} CUDA::cudart_static)
endif()

if(KASSETTE_MPI_FOUND)
  add_library(kassette_mpi SHARED)
  target_link_libraries(kassette_mpi PRIVATE kassette_mpi_sources)
  kassette_compile_options(kassette_mpi)
  kassette_stack_options(kassette_mpi)
  set_target_properties(kassette_mpi PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    INSTALL_RPATH "$ORIGIN")
  target_link_libraries(kassette_mpi PRIVATE MPI::MPI_CXX)
endif()

# What a script needs to run: `kassette run` builds this.
add_custom_target(kassette_library ALL DEPENDS kassette)
if(TARGET kassette_cuda)
  add_dependencies(kassette_library kassette_cuda)
endif()
if(TARGET kassette_nccl)
  add_dependencies(kassette_library kassette_nccl)
endif()
if(TARGET kassette_mpi)
  add_dependencies(kassette_library kassette_mpi)
endif()

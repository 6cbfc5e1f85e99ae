# cmake/cuda_architectures.cmake - the architectures that nvcc compiles for.
#
# kassette_cuda_architectures(RESULT WANTED NVCC VERSION) sets RESULT to the list that WANTED stands for:
#   AUTO     those of this machine's GPUs; where there is none, or nvcc does not know one of them, PTX of 8.0, which the driver of any later GPU
#            translates, and code for 9.0
#   release  code for every architecture from 8.0 on that this nvcc knows, and PTX of the newest, for GPUs that come after it
# Anything else is a list itself.
function(kassette_cuda_architectures result wanted nvcc version)
  set(list ${wanted})
  if(wanted STREQUAL release)
    set(list 80-real 86-real 89-real 90-real 100-real 120)
    if(version VERSION_LESS 12.8)
      set(list 80-real 86-real 89-real 90)
    endif()
  elseif(wanted STREQUAL AUTO)
    set(list)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader TIMEOUT 20
      RESULT_VARIABLE failed OUTPUT_VARIABLE gpus ERROR_QUIET)
    execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" gpus "${gpus}")
    foreach(gpu IN LISTS gpus)
      string(REPLACE . "" gpu ${gpu})
      if(failed OR gpu LESS 80 OR NOT known MATCHES "compute_${gpu}\n")
        set(list)
        break()
      endif()
      list(APPEND list ${gpu}-real)
    endforeach()
    list(REMOVE_DUPLICATES list)
    if(NOT list)
      set(list 80-virtual 90-real)
    endif()
  endif()
  set(${result} "${list}" PARENT_SCOPE)
endfunction()

# cmake/kassette.cmake - how every target of ours is compiled, and the helpers the folders use.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  else()
    set(CMAKE_BUILD_TYPE Release)  # of this folder and those below it; the project that adds us keeps its own
  endif()
endif()
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
if(KASSETTE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(KASSETTE_CCACHE_PROGRAM ccache)
  mark_as_advanced(KASSETTE_CCACHE_PROGRAM)
  if(KASSETTE_CCACHE_PROGRAM)
    # One cache for all clones: paths below the clone are hashed as relative ones.
    # What is compiled with a precompiled header is cached too.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${KASSETTE_CCACHE_PROGRAM})
    add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endif()
if(NOT KASSETTE_SANITIZE MATCHES "^(|address|thread)$")
  message(FATAL_ERROR "KASSETTE_SANITIZE is \"${KASSETTE_SANITIZE}\"; it takes address or thread")
endif()

# Levels a *_simd.cpp is compiled for; the library picks one at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(KASSETTE_LEVELS sse2 avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(KASSETTE_LEVELS neon64)
else()
  message(WARNING "kassette is tested on x86-64 and ARM64; on ${CMAKE_SYSTEM_PROCESSOR} it compiles plain C++ and is untested")
  set(KASSETTE_LEVELS generic)
endif()
set(KASSETTE_LEVEL_FLAGS_sse2 -msse2)
set(KASSETTE_LEVEL_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(KASSETTE_LEVEL_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mfma -mf16c
    -mprefer-vector-width=512)
set(KASSETTE_LEVEL_FLAGS_neon64)
set(KASSETTE_LEVEL_FLAGS_generic)

# Where <kassette/...> is found, and where the one header lies that is made, <kassette/cling.h>.
set(KASSETTE_INCLUDE ${PROJECT_SOURCE_DIR}/include)
set(KASSETTE_BUILD_INCLUDE ${PROJECT_BINARY_DIR}/include)

# Flags of every target of ours; never seen by a consumer.
function(kassette_compile_options target)
  # CMake's own Release says -O3; what gains from it asks for it.
  set(release -O2)
  set(warnings -Wall -Wextra -Wshadow $<$<BOOL:${KASSETTE_WERROR}>:-Werror>)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${warnings}>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${release}>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${KASSETTE_INCLUDE})
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  if(KASSETTE_SANITIZE STREQUAL address)
    set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  elseif(KASSETTE_SANITIZE STREQUAL thread)
    set(sanitize -fsanitize=thread)
  endif()
  if(sanitize)
    # g++ documents that the sanitizers' code sets off this warning where nothing is wrong.
    set(quiet $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${sanitize} ${quiet} -O1 -g1 -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE ${sanitize})
  endif()
endfunction()

# Flags of the code inside our shared libraries, which run on threads of their users, and these may have small stacks. A frame
# that is larger than the guard page below a stack could write past it: -fstack-clash-protection touches each page of it. No
# frame is above 16 KiB where warnings are errors, in the code that users run: without optimisation and under sanitizers
# variables do not share their places.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-Werror -fstack-clash-protection" KASSETTE_HAS_STACK_CLASH_PROTECTION)
function(kassette_stack_options target)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${KASSETTE_HAS_STACK_CLASH_PROTECTION}>>:-fstack-clash-protection>)
  if(KASSETTE_WERROR AND NOT KASSETTE_SANITIZE)
    target_compile_options(${target} PRIVATE
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wframe-larger-than=16384>)
  endif()
endfunction()

# Flags of the code inside libkassette.so.
function(kassette_library_options target)
  kassette_compile_options(${target})
  kassette_stack_options(${target})
  # -ffp-contract=off: g++ fuses a * b + c across xsimd batches, so that a vector body and its tail
  # would round differently. initial-exec: a thread-local is then one instruction away; the library
  # has a few hundred bytes of them, which the loader's reserve holds even under dlopen.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -ftls-model=initial-exec>)
  target_compile_definitions(${target} PRIVATE KASSETTE_VERSION="${PROJECT_VERSION}")
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${target} PRIVATE kassette_third_party)
endfunction()

# kassette_precompile(<target> <first>): the precompiled header, made for the target `first` and read by all others with its flags. It saves about a
# fifth of the time to compile the library.
function(kassette_precompile target first)
  if(target STREQUAL first)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/core/precompiled.h)
  else()
    target_precompile_headers(${target} REUSE_FROM ${first})
  endif()
endfunction()

# kassette_folder(<name> [<prefix>...]): the object library kassette_<name> of the folder's sources, as they lie there: *_simd.cpp once
# for each CPU level, *.cu in the library of CUDA's kernels. What begins with a prefix is left to other libraries.
function(kassette_folder name)
  file(GLOB sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cpp */*.cpp *.cu */*.cu)
  foreach(prefix IN LISTS ARGN)
    list(FILTER sources EXCLUDE REGEX "^${prefix}")
  endforeach()
  set(simd ${sources})
  list(FILTER simd INCLUDE REGEX "_simd[.]cpp$")
  set(cuda ${sources})
  list(FILTER cuda INCLUDE REGEX "[.]cu$")
  list(FILTER sources EXCLUDE REGEX "_simd[.]cpp$|[.]cu$")
  add_library(kassette_${name} OBJECT ${sources})
  kassette_library_options(kassette_${name})
  kassette_precompile(kassette_${name} kassette_core)
  kassette_add_objects(kassette_${name})
  if(simd)
    kassette_simd_sources(kassette_${name} ${simd})
  endif()
  if(cuda)
    target_sources(kassette_cuda_sources INTERFACE ${cuda})
  endif()
endfunction()

# kassette_add_objects(<target>): its objects become a part of libkassette.so, and of what the unit tests link.
function(kassette_add_objects target)
  target_sources(kassette PRIVATE $<TARGET_OBJECTS:${target}>)
  target_sources(kassette_objects INTERFACE $<TARGET_OBJECTS:${target}>)
endfunction()

# kassette_simd_sources(<target> file_simd.cpp ...): each file once per level, with KASSETTE_LEVEL
# naming the level. xsimd is renamed per level too: its functions are weak symbols, and without that
# the linker would serve one level's code to another.
function(kassette_simd_sources target)
  foreach(level IN LISTS KASSETTE_LEVELS)
    set(objects ${target}_${level})
    add_library(${objects} OBJECT ${ARGN})
    kassette_library_options(${objects})
    # g++ warns of its own intrinsics, "'__Y' may be used uninitialized" (GCC bug 105593).
    target_compile_options(${objects} PRIVATE ${KASSETTE_LEVEL_FLAGS_${level}}
      $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized -Wno-maybe-uninitialized>)
    if(KASSETTE_SANITIZE STREQUAL address)
      # Guarding every batch on the stack makes g++ take 52 s instead of 8 s for unary_simd.cpp;
      # heap accesses stay checked, and UBSan has the bounds of arrays.
      target_compile_options(${objects} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:--param=asan-stack=0>)
    endif()
    if(NOT KASSETTE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
      target_compile_options(${objects} PRIVATE -O3)
    endif()
    target_compile_definitions(${objects} PRIVATE
      KASSETTE_LEVEL=${level} xsimd=xsimd_${level})
    kassette_precompile(${objects} kassette_devices_${level})
    kassette_add_objects(${objects})
  endforeach()
endfunction()

# kassette_program(<name> sources...): a program of ours on top of the shared library.
function(kassette_program name)
  add_executable(${name} ${ARGN})
  kassette_compile_options(${name})
  target_link_libraries(${name} PRIVATE kassette)
endfunction()

# kassette_install_program(<target> <name> <component>): a program of the command kassette, under another name. It finds the library from where it
# lies, for which CMake has to install it as a target; those cannot be renamed.
function(kassette_install_program target name component)
  file(RELATIVE_PATH libraries /${CMAKE_INSTALL_LIBEXECDIR}/kassette /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries}")
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/kassette COMPONENT ${component} OPTIONAL)
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBEXECDIR}/kassette\")
    if(EXISTS \"\${folder}/${target}\")
      file(RENAME \"\${folder}/${target}\" \"\${folder}/${name}\")
    endif()
  " COMPONENT ${component})
endfunction()

# kassette_source_options(<options> <source>...): options for single sources of this folder. CMake itself takes the name of a file that is not
# there, and the options would be lost when it is moved.
function(kassette_source_options options)
  foreach(source IN LISTS ARGN)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR} has no ${source}, for which there are compile options")
    endif()
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()

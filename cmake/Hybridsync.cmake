# Settings and helpers shared by every folder.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# No fused multiply-add: everything that is hashed must give the same bits on every machine.
add_compile_options(-Wall -Wextra -ffp-contract=off)
if(HYBRIDSYNC_SANITIZE)
  add_compile_options(-fsanitize=${HYBRIDSYNC_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${HYBRIDSYNC_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
if(HYBRIDSYNC_TESTS)
  find_package(GTest REQUIRED)
endif()
# Torch by its own CMake files, or straight from the folder of an installed Python package: those of a
# CUDA build do not load without the CUDA toolkit, which this build does not need.
set(HYBRIDSYNC_TORCH_FOLDER "" CACHE PATH "folder of an installed torch package, if not found by CMake")
if(HYBRIDSYNC_TORCH AND HYBRIDSYNC_TORCH_FOLDER)
  set(_torch_lib ${HYBRIDSYNC_TORCH_FOLDER}/lib)
  add_library(hs_torch_package INTERFACE)
  target_include_directories(hs_torch_package SYSTEM INTERFACE ${HYBRIDSYNC_TORCH_FOLDER}/include
    ${HYBRIDSYNC_TORCH_FOLDER}/include/torch/csrc/api/include)
  target_link_libraries(hs_torch_package INTERFACE -Wl,--no-as-needed ${_torch_lib}/libtorch.so
    -Wl,--as-needed ${_torch_lib}/libtorch_cpu.so ${_torch_lib}/libc10.so)
  target_link_options(hs_torch_package INTERFACE -Wl,-rpath,${_torch_lib} -Wl,--allow-shlib-undefined)
  set(TORCH_LIBRARIES hs_torch_package)
elseif(HYBRIDSYNC_TORCH)
  find_package(Torch REQUIRED)
endif()

# hs_library(NAME SOURCES a.cpp b.cpp LIBS hs_config ...): the library hs_NAME of one folder.
function(hs_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(hs_${name} STATIC ${ARG_SOURCES})
  add_library(hybridsync::${name} ALIAS hs_${name})
  target_include_directories(hs_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(hs_${name} PUBLIC ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
endfunction()

# hs_test(NAME SOURCES ... LIBS ...): a GoogleTest binary, one ctest entry per test case.
function(hs_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
endfunction()

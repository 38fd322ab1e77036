# The Trainer's tests, with the ranks of small runs as threads.
hs_test(accumulation_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/accumulation_test.cpp LIBS hs_torch)
hs_test(batch_norm_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/batch_norm_test.cpp LIBS hs_torch)
hs_test(momentum_correction_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/momentum_correction_test.cpp LIBS hs_torch)
hs_test(parity_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/parity_test.cpp LIBS hs_torch)
hs_test(moments_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/moments_test.cpp LIBS hs_torch)
# The ranks are threads: torch's own would only be in their way.
set_tests_properties(accumulation_test batch_norm_test momentum_correction_test parity_test PROPERTIES
  ENVIRONMENT OMP_NUM_THREADS=1)

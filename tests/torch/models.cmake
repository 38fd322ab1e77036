# Of the torch that is built against, where it came with Python.
get_filename_component(torch_python "${TORCH_INSTALL_PREFIX}/../../../../bin/python3" ABSOLUTE)
if(NOT EXISTS ${torch_python})
  find_program(PYTHON3 python3)
  execute_process(COMMAND ${PYTHON3} -c "import torch" RESULT_VARIABLE no_torch OUTPUT_QUIET ERROR_QUIET)
  set(torch_python "")
  if(PYTHON3 AND no_torch EQUAL 0)
    set(torch_python ${PYTHON3})
  endif()
endif()
hs_test(models_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/models_test.cpp LIBS hs_models ZLIB::ZLIB)
target_compile_definitions(models_test PRIVATE
  TORCH_PYTHON="${torch_python}" STATE_DICT_SCRIPT="${CMAKE_CURRENT_LIST_DIR}/state_dict.py")

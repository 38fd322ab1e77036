# The program's own trainer.
hs_test(program_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/program_test.cpp
        LIBS hs_program hs_models ZLIB::ZLIB)

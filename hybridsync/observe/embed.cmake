# Turns files into one C++ source: cmake -DOUTPUT=assets.cpp "-DFILES=name=path;..." -P embed.cmake
# Each becomes the string_view hybridsync::assets::name.
set(text "#include <string_view>\n\nnamespace hybridsync::assets {\n")
foreach(entry ${FILES})
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${entry}")
  if(NOT matched)
    message(FATAL_ERROR "embed.cmake: \"${entry}\" is not name=path")
  endif()
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND text
    "static constexpr char ${name}_bytes[] = {${bytes}'\\0'};\n"
    "extern const std::string_view ${name};\n"
    "const std::string_view ${name}{${name}_bytes, sizeof(${name}_bytes) - 1};\n")
endforeach()
string(APPEND text "}  // namespace hybridsync::assets\n")
file(WRITE "${OUTPUT}" "${text}")

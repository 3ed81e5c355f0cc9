# The program, and the library by which others ask the same (docs/api.md).
option(SCALECALC_LIBRARY "Build the shared library and the program over it (needs position independent code)" OFF)
set(api_sources src/api/program.cpp src/api/scalecalc.cpp)
# Before the libraries, so that of functions compiled twice (of templates, and inline) the fast ones are taken.
set(fast_objects $<TARGET_OBJECTS:scalecalc_search> $<TARGET_OBJECTS:scalecalc_base>)

add_library(scalecalc_api STATIC ${api_sources})
target_link_libraries(scalecalc_api PUBLIC scalecalc_options PRIVATE scalecalc_cli scalecalc_warnings)
target_compile_options(scalecalc_api PRIVATE ${SCALECALC_FAST_BUILD} ${SCALECALC_SANITIZERS})

if(NOT SCALECALC_LIBRARY)
  add_executable(scalecalc src/main.cpp ${fast_objects})
  target_link_libraries(scalecalc PRIVATE scalecalc_api scalecalc_cli scalecalc_warnings)
  return()
endif()

if(NOT CMAKE_POSITION_INDEPENDENT_CODE)
  message(FATAL_ERROR "SCALECALC_LIBRARY needs -DCMAKE_POSITION_INDEPENDENT_CODE=ON (the preset package sets both)")
endif()
add_library(scalecalc_shared SHARED ${api_sources} ${fast_objects})
target_link_libraries(scalecalc_shared PRIVATE scalecalc_cli scalecalc_warnings scalecalc_options)
target_link_options(scalecalc_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/api/scalecalc.map)
set_target_properties(scalecalc_shared PROPERTIES OUTPUT_NAME scalecalc EXPORT_NAME scalecalc VERSION ${PROJECT_VERSION}
                      SOVERSION 0 LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/scalecalc.map)
target_include_directories(scalecalc_shared INTERFACE $<INSTALL_INTERFACE:include>)
add_executable(scalecalc src/main.cpp)
target_link_libraries(scalecalc PRIVATE scalecalc_shared scalecalc_options scalecalc_warnings)

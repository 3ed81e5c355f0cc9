# The program, and the library by which others ask the same (docs/api.md).
set(api_sources src/api/program.cpp src/api/scalecalc.cpp)
# Before the libraries, so that of functions compiled twice (of templates, and inline) the fast ones are taken.
set(fast_objects $<TARGET_OBJECTS:scalecalc_layouts> $<TARGET_OBJECTS:scalecalc_search>
                 $<TARGET_OBJECTS:scalecalc_reading> $<TARGET_OBJECTS:scalecalc_base>)

add_library(scalecalc_api STATIC ${api_sources})
target_link_libraries(scalecalc_api PUBLIC scalecalc_options PRIVATE scalecalc_cli scalecalc_warnings)
target_compile_options(scalecalc_api PRIVATE ${SCALECALC_FAST_BUILD} ${SCALECALC_SANITIZERS})

add_executable(scalecalc src/main.cpp ${fast_objects})
target_link_libraries(scalecalc PRIVATE scalecalc_api scalecalc_cli scalecalc_warnings)
target_link_options(scalecalc PRIVATE $<$<CONFIG:Release>:LINKER:--gc-sections>)
if(NOT SCALECALC_SHARED)
  return()
endif()

add_library(scalecalc_shared SHARED ${api_sources} ${fast_objects})
target_link_libraries(scalecalc_shared PRIVATE scalecalc_cli scalecalc_warnings scalecalc_options)
target_link_options(scalecalc_shared PRIVATE LINKER:--gc-sections
                    LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/api/scalecalc.map)
set_target_properties(scalecalc_shared PROPERTIES OUTPUT_NAME scalecalc EXPORT_NAME scalecalc VERSION ${PROJECT_VERSION}
                      SOVERSION 0 LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/api/scalecalc.map)
target_include_directories(scalecalc_shared INTERFACE $<INSTALL_INTERFACE:include>)
# What is installed shares the library: once on the disk.
include(GNUInstallDirs)
file(RELATIVE_PATH library_of_program /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
add_executable(scalecalc_over_library src/main.cpp)
target_link_libraries(scalecalc_over_library PRIVATE scalecalc_shared scalecalc_options scalecalc_warnings)
set_target_properties(scalecalc_over_library PROPERTIES OUTPUT_NAME scalecalc RUNTIME_OUTPUT_DIRECTORY
                      ${PROJECT_BINARY_DIR}/over_library INSTALL_RPATH "$ORIGIN/${library_of_program}"
                      # Relative while it is built too: an absolute path leaves its length in what is installed.
                      BUILD_RPATH_USE_ORIGIN ON)
# Of the tarball alone, for systems older than this one.
add_library(scalecalc_older_glibc SHARED src/cmake/older_glibc.cpp)
target_link_libraries(scalecalc_older_glibc PRIVATE scalecalc_options scalecalc_warnings)

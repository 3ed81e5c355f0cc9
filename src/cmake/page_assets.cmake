# What pages are made of, put into the program: our style and script, and the chart libraries if their archives are in
# SCALECALC_CHARTS_DIR. Nothing is fetched here (src/cmake/fetch_charts.cmake does, for ./dev).
include(${CMAKE_CURRENT_LIST_DIR}/charts.cmake)
set(SCALECALC_CHARTS AUTO CACHE STRING "Pictures in pages: ON needs the libraries, AUTO takes them if they are there, OFF")
set_property(CACHE SCALECALC_CHARTS PROPERTY STRINGS AUTO ON OFF)
set(SCALECALC_CHARTS_DIR ${PROJECT_SOURCE_DIR}/build/charts CACHE PATH "Where the archives of the chart libraries are")

# The libraries are most of a megabyte, and deflated a third of it.
add_executable(deflate src/cmake/deflate.cpp)
target_link_libraries(deflate PRIVATE scalecalc_options scalecalc_warnings ZLIB::ZLIB)

set(page_files ${PROJECT_SOURCE_DIR}/src/report/page.css ${PROJECT_SOURCE_DIR}/src/report/page.js)
set(page_stored ${page_files})
set(page_sums)
set(page_licences "" "")
set(charts_missing)
if(NOT SCALECALC_CHARTS STREQUAL "OFF")
  foreach(entry IN LISTS SCALECALC_CHART_LIBRARIES)
    scalecalc_read_library(lib "${entry}")
    set(archive ${SCALECALC_CHARTS_DIR}/${lib_archive})
    if(NOT EXISTS ${archive})
      list(APPEND charts_missing ${lib_archive})
      continue()
    endif()
    file(SHA512 ${archive} sum)
    if(NOT sum STREQUAL lib_sum)
      message(FATAL_ERROR "${archive} is not ${lib_name} ${lib_version}: its sha512 is ${sum}")
    endif()
    set(unpacked ${PROJECT_BINARY_DIR}/charts/${lib_name}-${lib_version})
    if(NOT EXISTS ${unpacked}/package/${lib_file})
      file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${unpacked} PATTERNS package/${lib_file} package/LICENSE)
    endif()
    file(READ ${unpacked}/package/${lib_file} text)
    if(text MATCHES "</script|<!--|\r")
      message(FATAL_ERROR "${lib_name} ${lib_version} cannot stand inside a script element")
    endif()
    list(APPEND page_files ${unpacked}/package/${lib_file})
    set(deflated ${PROJECT_BINARY_DIR}/charts/${lib_name}-${lib_version}.z)
    add_custom_command(OUTPUT ${deflated} COMMAND deflate ${unpacked}/package/${lib_file} ${deflated}
                       DEPENDS deflate ${unpacked}/package/${lib_file} VERBATIM)
    list(APPEND page_stored ${deflated})
    # The notice that its licence (BSD-3-Clause) asks for stands in every page.
    file(READ ${unpacked}/package/LICENSE licence)
    string(REGEX REPLACE "--+" "-" licence "${lib_name} ${lib_version}. ${licence}")
    string(REPLACE ";" "," licence "${licence}")
    if(lib_name STREQUAL "vega")  # the first: what all of them hold
      file(READ ${PROJECT_SOURCE_DIR}/src/cmake/page_notices.txt inside)
      string(REGEX REPLACE "--+" "-" inside "${inside}")
      string(REPLACE ";" "," inside "${inside}")
      string(APPEND licence "\n${inside}")
    endif()
    list(APPEND page_licences "${licence}")
    file(COPY_FILE ${unpacked}/package/LICENSE ${PROJECT_BINARY_DIR}/charts/LICENSE.${lib_name} ONLY_IF_DIFFERENT)
  endforeach()
endif()
if(charts_missing)
  if(SCALECALC_CHARTS STREQUAL "ON")
    message(FATAL_ERROR "SCALECALC_CHARTS=ON, and ${SCALECALC_CHARTS_DIR} lacks ${charts_missing}: run ./dev charts")
  endif()
  message(STATUS "Built WITHOUT charts in pages: ${SCALECALC_CHARTS_DIR} lacks ${charts_missing} (./dev charts)")
  list(SUBLIST page_files 0 2 page_files)
  list(SUBLIST page_stored 0 2 page_stored)
endif()
list(LENGTH page_files page_file_count)
if(page_file_count GREATER 2)
  set(SCALECALC_CHARTS_INCLUDED ON)
else()
  set(SCALECALC_CHARTS_INCLUDED OFF)
endif()
file(MAKE_DIRECTORY ${SCALECALC_CHARTS_DIR})
# A change of ours, or archives that come, configure anew: sums are taken here.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_files} ${SCALECALC_CHARTS_DIR})

set(page_includes "")
set(page_entries "")
set(index 0)
foreach(file IN LISTS page_files)
  file(SHA256 ${file} sum)
  file(SIZE ${file} size)
  list(GET page_stored ${index} stored)
  list(GET page_licences ${index} licence)
  string(APPEND page_includes "PAGE_ASSET(${index}, \"${stored}\")\n")
  string(APPEND page_entries "    {bytes_of(page_asset_${index}, page_asset_${index}_end), ${size}, \"${sum}\", R\"licence(${licence})licence\"},\n")
  math(EXPR index "${index} + 1")
endforeach()
set(page_assets ${PROJECT_BINARY_DIR}/page_assets.cpp)
file(CONFIGURE OUTPUT ${page_assets} @ONLY CONTENT [[
// Written by src/cmake/page_assets.cmake.
#include "report/page_assets.h"

#include <array>

#include "base/inflate.h"

// The assembler reads the files: GCC 12 has no #embed.
#define PAGE_ASSET(n, file)                                                           \
  asm(".pushsection .rodata\n.global page_asset_" #n "\npage_asset_" #n ":\n.incbin \"" file    \
      "\"\n.global page_asset_" #n "_end\npage_asset_" #n "_end:\n.byte 0\n.popsection\n"); \
  extern "C" const char page_asset_##n[];                                             \
  extern "C" const char page_asset_##n##_end[];

@page_includes@
namespace scalecalc {
namespace {

std::string_view bytes_of(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

const std::array kPageFiles{std::to_array<PageScript>({
@page_entries@})};

}  // namespace

std::string text_of(const PageScript& script) {
  return script.stored.size() == script.size ? std::string(script.stored) : inflated(script.stored, script.size);
}

std::string_view page_style() { return kPageFiles[0].stored; }
PageScript page_script() { return kPageFiles[1]; }
std::span<const PageScript> chart_libraries() { return std::span(kPageFiles).subspan(2); }

}  // namespace scalecalc
]])
set_source_files_properties(${page_assets} PROPERTIES OBJECT_DEPENDS "${page_stored}" SKIP_UNITY_BUILD_INCLUSION ON
                            SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-Wno-pedantic")

// Files that the build puts into the program for its pages (src/cmake/page_assets.cmake).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace scalecalc {

struct PageScript {
  std::string_view stored;   ///< its text; deflated if it is shorter than `size`
  std::size_t size;          ///< of its text
  std::string_view sha256;   ///< in hexadecimal
  std::string_view licence;  ///< a comment for the page: whose it is; empty: ours
};

std::string text_of(const PageScript& script);

std::string_view page_style();
/// Ours: tables, and pictures where there are the libraries for them.
PageScript page_script();
/// In the order in which they are needed; none where the program was built without.
std::span<const PageScript> chart_libraries();

}  // namespace scalecalc

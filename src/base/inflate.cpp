// Inflates what the build compressed into the program: the catalog and the scripts of pages.
#include "base/inflate.h"

#include <zlib.h>

#include "base/check.h"

namespace scalecalc {

std::string inflated(std::string_view bytes, std::size_t size) {
  std::string out(size, '\0');
  uLongf made = size;
  const int state = uncompress(reinterpret_cast<Bytef*>(out.data()), &made,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  check(state == Z_OK && made == size, "what the build has deflated is whole");
  return out;
}

}  // namespace scalecalc

// deflate FROM TO: a file as zlib deflates it, for base/inflate.h. Runs while the program is built.
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: deflate FROM TO\n", stderr), 2;
  std::ifstream in(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  const int state = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                              text.size(), Z_BEST_COMPRESSION);
  out.resize(size);
  std::ofstream to(argv[2], std::ios::binary);
  to << out << std::flush;
  return state == Z_OK && in.good() && to.good() ? 0 : 1;
}

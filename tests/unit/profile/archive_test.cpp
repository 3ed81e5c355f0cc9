// Tar archives of recordings, written here block by block as POSIX has them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "profile/byte_source.h"
#include "support/errors.h"
#include "support/scratch.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

std::string header(const std::string& name, std::size_t size, char type = '0') {
  std::string out(512, '\0');
  out.replace(0, name.size(), name);
  out.replace(100, 7, "0000644");
  out.replace(124, 11, fmt::format("{:011o}", size));
  out[156] = type;
  out.replace(257, 8, std::string("ustar\00000", 8));
  out.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : out) sum += static_cast<unsigned char>(c);
  out.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return out;
}

std::string member(const std::string& name, const std::string& content, char type = '0') {
  std::string out = header(name, content.size(), type) + content;
  out.resize((out.size() + 511) / 512 * 512, '\0');
  return out;
}

std::string tar(const std::string& members) { return members + std::string(1024, '\0'); }

std::string gzipped(const std::string& plain) {
  std::string out(plain.size() + 1024, '\0');
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string in = plain;
  stream.next_in = reinterpret_cast<unsigned char*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string kineto() {
  std::ostringstream text;
  text << std::ifstream(test::recorded("kineto.json")).rdbuf();
  return text.str();
}

ProfileAnswer asked(const std::string& file) { return answer(ProfileQuestion{.files = {file}}, test::switched_chip()); }

TEST(Archive, MembersAreRanksAndWhichWereReadIsSaid) {
  const test::Scratch scratch;
  const std::string trace = kineto();
  const std::string whole = tar(member("run/", "", '5') + member("README", "two ranks") +
                                member("run/rank0.json", trace) + member("run/rank1.json.gz", gzipped(trace)));
  for (const std::string& bytes : {whole, gzipped(whole)}) {
    const std::string file = scratch.put("t.tar.gz", bytes);
    const ProfileAnswer found = asked(file);
    ASSERT_EQ(found.ranks.size(), 2U);
    EXPECT_EQ(found.ranks[1].file, file + "#run/rank1.json.gz");
    EXPECT_EQ(found.ranks[0].step_s(), found.ranks[1].step_s());
    EXPECT_EQ(found.ranks[0].step_s(), asked(test::recorded("kineto.json")).step_s);
    const auto says = [&](const Assumption& a) {
      return a.text.find("run/rank0.json and run/rank1.json.gz; left out: README") != std::string::npos;
    };
    EXPECT_TRUE(std::any_of(found.assumptions.begin(), found.assumptions.end(), says));
    EXPECT_EQ(asked(file + "#run/rank1.json.gz").ranks.size(), 1U);
    const auto missing = [&] { asked(file + "#rank9.json"); };
    EXPECT_NE(test::problems_of(missing).find("has no member 'rank9.json'"), std::string::npos);
  }
}

TEST(Archive, LongNamesOfGnuAndPax) {
  const test::Scratch scratch;
  const std::string name = std::string(120, 'd') + "/rank0.json";
  const std::string record = fmt::format("{} path={}\n", 4 + 5 + name.size() + 1, name);
  for (const std::string& before :
       {member("././@LongLink", name + std::string(1, '\0'), 'L'), member("PaxHeader", record, 'x')}) {
    const std::string file = scratch.put("t.tar", tar(before + member(name.substr(0, 99), kineto())));
    EXPECT_EQ(asked(file).ranks.front().file, file + "#" + name);
  }
}

TEST(Archive, WhatIsCutOffOrHostileIsRefused) {
  const test::Scratch scratch;
  const std::string whole = tar(member("rank0.json", kineto()) + member("rank1.json", kineto()));
  // The last kilobyte is the end mark, of which one block would do.
  for (std::size_t cut = 600; cut + 1024 <= whole.size(); cut += 997) {
    const std::string file = scratch.put("cut.tar", whole.substr(0, cut));
    EXPECT_NE(test::problems_of([&] { asked(file); }).find("cut off"), std::string::npos) << cut;
  }
  const std::string packed = gzipped(whole);
  for (std::size_t cut = 20; cut < packed.size(); cut += 301) {
    const std::string file = scratch.put("cut.tgz", packed.substr(0, cut));
    EXPECT_NE(test::problems_of([&] { asked(file); }), "") << cut;
  }
  std::string bent = whole;
  bent[512 + (kineto().size() + 511) / 512 * 512 + 3] ^= 1;
  EXPECT_NE(test::problems_of([&] { asked(scratch.put("bent.tar", bent)); }).find("a damaged header"),
            std::string::npos);
  const std::string huge = header("rank0.json", std::size_t{1} << 32) + "{}";
  EXPECT_NE(test::problems_of([&] { asked(scratch.put("huge.tar", huge)); }).find("cut off"), std::string::npos);
  const std::string name = header("x", std::size_t{1} << 30, 'L');
  EXPECT_NE(test::problems_of([&] { asked(scratch.put("name.tar", name)); }).find("in the archive"), std::string::npos);
  const std::string none = tar(member("README", "nothing"));
  EXPECT_NE(test::problems_of([&] { asked(scratch.put("none.tar", none)); }).find("none of the archive's 1 files"),
            std::string::npos);
}

}  // namespace
}  // namespace scalecalc

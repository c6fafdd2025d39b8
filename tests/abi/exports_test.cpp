// SPDX-License-Identifier: Apache-2.0
// libgba.so exports exactly the functions that gba/gba.h and gba/barrier.h declare.
#include "tests/abi/exports.hpp"
#include "tests/support/text.hpp"

namespace {

TEST(LibGba, ExportsExactlyTheFunctionsOfItsHeaders) {
  exports::Names declared = exports::declared_in(GBA_HEADER, "GBA_API", "gba_");
  EXPECT_EQ(declared.count("gba_open"), 1U);
  const exports::Names barriers = exports::declared_in(GBA_BARRIER_HEADER, "GBA_API", "gba_barrier_");
  EXPECT_EQ(barriers.count("gba_barrier_arrive"), 1U);
  declared.insert(barriers.begin(), barriers.end());
  EXPECT_EQ(exports::exported_by(GBA_LIBRARY), declared);
}

// In particular not libpci, which is under the GPL; only the tool uses it.
TEST(LibGba, NeedsOnlySystemLibraries) {
  const auto outcome = test_support::run({"readelf", "-d", GBA_LIBRARY});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  std::istringstream lines(outcome.output);
  const std::string allowed = R"(\[(libstdc\+\+|libm|libgcc_s|libc|ld-linux[^.]*|lib[atu]+[a-z]*san)\.so\.[0-9]+\])";
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") != std::string::npos) {
      EXPECT_TRUE(test_support::has_match(line, allowed)) << line;
    }
    if (line.find("(SONAME)") != std::string::npos) {
      EXPECT_NE(line.find("[libgba.so.0]"), std::string::npos) << line;
    }
  }
}

}  // namespace

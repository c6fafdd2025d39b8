// SPDX-License-Identifier: Apache-2.0
// The instructions of small calls that wait for nobody, which is all that they take besides the way of the data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/job.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

constexpr long kRounds = 200;

/// The largest count of the files that callgrind has left in a folder, one for each PE; 0: none.
long largest_count(const std::string& folder) {
  long largest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::string head = line.substr(0, line.find(' ') + 1);
      if (head == "summary: " || head == "totals: ") {
        largest = std::max(largest, std::stol(line.substr(head.size())));
      }
    }
  }
  return largest;
}

struct Call {
  const char* name;
  const char* routine;
  long most;
};

class SmallCall : public testing::TestWithParam<Call> {};

TEST_P(SmallCall, TakesFewInstructions) {
  if (test_support::kSanitized) {
    GTEST_SKIP() << "a sanitizer adds instructions";
  }
  if (!run({"/bin/sh", "-c", "command -v valgrind"}).exit.clean()) {
    GTEST_SKIP() << "valgrind is not installed (scripts/install-deps.sh test installs it)";
  }
  const test_support::TempDir folder;
  const auto job =
      run(oshrun(2, "off",
                 {"valgrind", "--tool=callgrind", "--collect-atstart=no",
                  std::string("--toggle-collect=*") + GetParam().routine, "--callgrind-out-file=" + folder.file("%p"),
                  test_program("small_call_pes"), GetParam().name, std::to_string(kRounds)}),
          {}, Seconds{200});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  const long each = (largest_count(folder.file("")) + kRounds - 1) / kRounds;
  std::printf("%s: %ld instructions, at most %ld\n", GetParam().routine, each, GetParam().most);
  EXPECT_GT(each, 0) << job.output;
  EXPECT_LE(each, GetParam().most);
}

INSTANTIATE_TEST_SUITE_P(All, SmallCall,
                         testing::Values(Call{"broadcast", "shmem_long_broadcast", 370},
                                         Call{"scan", "shmem_long_sum_inscan", 490},
                                         Call{"set", "shmem_broadcast64", 400}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The main function of tests. Arguments are names of source files, such as folder/name_test.cpp: only the tests in them
// run. GoogleTest counts a run with skipped tests as a success; this is reported to ctest by a separate exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

namespace {

/// A filter of GoogleTest for the tests in the files. Ends the program if a file has no test, or if a test is in a file
/// that no entry of ctest names.
std::string tests_in(const std::set<std::string>& files) {
  std::set<std::string> empty = files;
  std::string filter;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *unit.GetTestSuite(i);
    std::string tests;
    bool all = true;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string path = std::string("/") + test.file();
      if (!path.ends_with("_test.cpp")) {
        std::fprintf(stderr, "%s has tests, but its name does not end with _test.cpp: no entry runs them\n",
                     test.file());
        std::exit(1);
      }
      const auto file = std::ranges::find_if(files, [&](const auto& name) { return path.ends_with("/" + name); });
      if (file == files.end()) {
        all = false;
      } else {
        empty.erase(*file);
        tests += std::string(suite.name()) + "." + test.name() + ":";
      }
    }
    filter += all ? std::string(suite.name()) + ".*:" : tests;
  }
  for (const std::string& file : empty) {
    std::fprintf(stderr, "no test is in %s\n", file.c_str());
    std::exit(1);
  }
  return filter;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
/// In place of the C library's, for UndefinedBehaviorSanitizer: it looks at an object through a pipe, and says that the
/// object has no type if it cannot make one. This makes one even where a test has taken all descriptors away.
extern "C" [[gnu::visibility("default")]] int pipe(int* ends) noexcept {
  int made = ::pipe2(ends, 0);
  if (made == 0 || errno != EMFILE) {
    return made;
  }
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit more{.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &more);
  made = ::pipe2(ends, 0);
  ::setrlimit(RLIMIT_NOFILE, &before);
  return made;
}
#endif

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  // The child of a death test has a filter already.
  if (argc > 1 && GTEST_FLAG_GET(filter) == "*") {
    GTEST_FLAG_SET(filter, tests_in({argv + 1, argv + argc}));
  }
  constexpr int kSkipped = 77;
  const int failed = RUN_ALL_TESTS();
  const bool skipped = testing::UnitTest::GetInstance()->skipped_test_count() > 0;
  return failed == 0 && skipped ? kSkipped : failed;
}

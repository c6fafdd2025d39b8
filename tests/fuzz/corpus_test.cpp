// SPDX-License-Identifier: Apache-2.0
// Runs the fuzz targets with the corpus. A target that finds an error aborts the process.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fake_device/shared_memory.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

/// All files of the folder, by name.
fuzz::Seeds read_folder(const std::string& name) {
  fuzz::Seeds files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(GBA_FUZZ_CORPUS "/") + name)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    files[entry.path().filename()] = {bytes.begin(), bytes.end()};
  }
  return files;
}

TEST(Corpus, MessagesCauseNoError) {
  const auto files = read_folder("message");
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    fuzz::run_message(bytes);
  }
}

TEST(Corpus, SessionsCauseNoError) {
  fake_device::install_sigbus_guard();
  const auto files = read_folder("session");
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    std::printf("%s\n", name.c_str());  // if the process aborts, the last name is the failing input
    std::fflush(stdout);
    fuzz::run_session(bytes);
  }
}

using Run = void (*)(std::span<const std::byte>);

class CorpusOf : public ::testing::TestWithParam<std::pair<const char*, Run>> {};

TEST_P(CorpusOf, CausesNoError) {
  const auto files = read_folder(GetParam().first);
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    GetParam().second(bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Libshmem, CorpusOf,
                         ::testing::Values(std::pair("uid", &fuzz::run_uid), std::pair("address", &fuzz::run_address),
                                           std::pair("request", &fuzz::run_request),
                                           std::pair("answer", &fuzz::run_answer), std::pair("trace", &fuzz::run_trace),
                                           std::pair("tuning", &fuzz::run_tuning),
                                           std::pair("directory", &fuzz::run_directory),
                                           std::pair("remote", &fuzz::run_remote),
                                           std::pair("links", &fuzz::run_links)),
                         [](const auto& one) { return std::string(one.param.first); });

TEST(Corpus, ContainsTheSeeds) {
  const auto holds = [](const fuzz::Seeds& files, const fuzz::Seeds& seeds) {
    for (const auto& [name, bytes] : seeds) {
      const auto found = files.find(name);
      EXPECT_TRUE(found != files.end() && found->second == bytes)
          << name << " is out of date: run build/tests/make_fuzz_corpus tests/fuzz/corpus";
    }
  };
  holds(read_folder("message"), fuzz::message_seeds());
  holds(read_folder("session"), fuzz::session_seeds());
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Plays the corpus to the fuzz targets: those end the process where something is wrong.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fake_device/shared_memory.hpp"
#include "tests/fuzz/seeds.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

/// By name; all files of the folder.
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

TEST(Corpus, OfMessagesIsSurvived) {
  const auto files = read_folder("message");
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    fuzz::run_message(bytes);
  }
}

TEST(Corpus, OfSessionsIsSurvived) {
  fake_device::install_sigbus_guard();
  const auto files = read_folder("session");
  ASSERT_FALSE(files.empty());
  for (const auto& [name, bytes] : files) {
    std::printf("%s\n", name.c_str());  // the last one is the one that fails
    std::fflush(stdout);
    fuzz::run_session(bytes);
  }
}

using Run = void (*)(std::span<const std::byte>);

class CorpusOf : public ::testing::TestWithParam<std::pair<const char*, Run>> {};

TEST_P(CorpusOf, IsSurvived) {
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
                                           std::pair("trace", &fuzz::run_trace),
                                           std::pair("tuning", &fuzz::run_tuning)),
                         [](const auto& one) { return std::string(one.param.first); });

TEST(Corpus, HoldsTheSeeds) {
  const auto holds = [](const fuzz::Seeds& files, const fuzz::Seeds& seeds) {
    for (const auto& [name, bytes] : seeds) {
      const auto found = files.find(name);
      EXPECT_TRUE(found != files.end() && found->second == bytes)
          << name << " is not what it should be: build/tests/make_fuzz_corpus tests/fuzz/corpus";
    }
  };
  holds(read_folder("message"), fuzz::message_seeds());
  holds(read_folder("session"), fuzz::session_seeds());
}

}  // namespace

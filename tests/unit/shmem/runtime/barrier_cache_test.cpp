// SPDX-License-Identifier: Apache-2.0
// What jobs leave about measured barriers for later jobs.
#include "shmem/runtime/barrier_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/temp_folder.hpp"
#include "shmem/layout/metadata.hpp"

namespace {

using shmem::Algorithm;
using shmem::BarrierCache;
using shmem::MeasuredBarrier;
using std::chrono::nanoseconds;

constexpr std::int64_t kNow = 100'000;

class BarrierCacheTest : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return folder_.file("barriers"); }
  [[nodiscard]] BarrierCache cache(const std::string& place = "here") const { return {file(), place}; }
  /// The algorithms that the cache knows, by index.
  static std::map<std::size_t, Algorithm> known(const BarrierCache& cache, std::int64_t now = kNow) {
    std::array<std::atomic<std::uint64_t>, shmem::kMeasuredBarriers> words{};
    cache.load(words, now);
    std::map<std::size_t, Algorithm> found;
    for (std::size_t index = 0; index < words.size(); ++index) {
      if (const auto word = MeasuredBarrier(words[index]).load()) {
        found[index] = word->algorithm;
      }
    }
    return found;
  }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  [[nodiscard]] std::string text() const {
    std::ifstream stream(file());
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  base::TempFolder folder_;
};

using Known = std::map<std::size_t, Algorithm>;

TEST_F(BarrierCacheTest, KeepsOneResultForEachSizeAndPlace) {
  cache().keep(1, {Algorithm::kNpuV3, nanoseconds{53}}, kNow);
  cache().keep(3, {Algorithm::kTournament, nanoseconds{99}}, kNow);
  cache("elsewhere").keep(1, {Algorithm::kBasic, nanoseconds{7}}, kNow);
  cache().keep(1, {Algorithm::kDissemination, nanoseconds{50}}, kNow + 1);
  EXPECT_EQ(known(cache(), kNow + 1), (Known{{1, Algorithm::kDissemination}, {3, Algorithm::kTournament}}));
  EXPECT_EQ(known(cache("elsewhere")), (Known{{1, Algorithm::kBasic}}));
  EXPECT_EQ(known(cache("anywhere")), Known{});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder_.path())) {
    ++files;
  }
  EXPECT_EQ(files, 1U) << "temporary files stay";
}

TEST_F(BarrierCacheTest, ForgetsWhatIsOld) {
  cache().keep(1, {Algorithm::kNpuV3, nanoseconds{53}}, kNow);
  EXPECT_EQ(known(cache(), kNow + BarrierCache::kSecondsKept - 1).size(), 1U);
  EXPECT_EQ(known(cache(), kNow + BarrierCache::kSecondsKept), Known{});
  EXPECT_EQ(known(cache(), kNow - 1), Known{}) << "of the future";
  cache().keep(2, {Algorithm::kNpuV3, nanoseconds{53}}, kNow + BarrierCache::kSecondsKept);
  EXPECT_EQ(text().find("here 1 "), std::string::npos) << "it stays in the file";
}

TEST_F(BarrierCacheTest, IgnoresWhatIsNoCache) {
  for (const std::string& wrong : {std::string("here 1 npu_v3 53 100000\n"),
                                   std::string("libshmem-measured-barriers 2\nhere 1 npu_v3 53 100000\n"),
                                   std::string(100, '\0'), std::string(2 << 20, 'x')}) {
    write(wrong);
    EXPECT_EQ(known(cache()), Known{});
  }
  write(
      "libshmem-measured-barriers 1\nhere 1 npu_v3\nhere 2 no_such 53 100000\nhere 32 npu_v3 53 100000\nhere -1 npu_v3 "
      "53 100000\nhere 4 npu_v3 -1 100000\nhere 5 basic 53 100000\n\n");
  EXPECT_EQ(known(cache()), (Known{{5, Algorithm::kBasic}}));
  std::filesystem::remove(file());
  std::filesystem::create_directory(file());
  EXPECT_EQ(known(cache()), Known{});
  cache().keep(1, {Algorithm::kNpuV3, nanoseconds{53}}, kNow);  // nothing happens
  EXPECT_EQ(known(BarrierCache("", "here")), Known{});
  BarrierCache("", "here").keep(1, {Algorithm::kNpuV3, nanoseconds{53}}, kNow);
}

TEST_F(BarrierCacheTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(known(cache()), Known{});
}

}  // namespace

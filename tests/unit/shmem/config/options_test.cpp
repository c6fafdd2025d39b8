// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/options.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace {

using shmem::BootstrapKind;
using shmem::GbaUse;
using shmem::HugePages;
using shmem::NetworkUse;
using shmem::NumaPolicy;
using shmem::read_options;

shmem::Environment environment(const std::map<std::string, std::string>& values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found != values.end() ? std::optional(found->second) : std::nullopt;
  };
}

TEST(Options, HaveTheDocumentedDefaults) {
  const auto options = read_options(environment({})).value();
  EXPECT_EQ(options.symmetric_size, std::size_t{1} << 30);
  EXPECT_EQ(options.barrier_algorithm, "auto");
  EXPECT_EQ(options.gba, GbaUse::kAuto);
  EXPECT_EQ(options.barrier_timeout.count(), 0);
  EXPECT_EQ(options.barrier_warning, std::chrono::seconds{30});
}

TEST(Options, SizesAcceptFractionsAndUnits) {
  const std::map<std::string, std::size_t> sizes{
      {"4096", 4096},     {"64k", 64 << 10},  {"64K", 64 << 10},    {"1.5m", 3 << 19},
      {"2G", 2ULL << 30}, {"1T", 1ULL << 40}, {"0.5g", 1ULL << 29}, {".5m", 1 << 19},
      {"3.1m", 3250586},  {"0.1", 1},         {"1.2", 2},           {"0", 1},
      {"0m", 1}};
  for (const auto& [text, size] : sizes) {
    EXPECT_EQ(read_options(environment({{"SHMEM_SYMMETRIC_SIZE", text}})).value().symmetric_size, size) << text;
  }
}

TEST(Options, TheNewNameOverridesTheOld) {
  EXPECT_EQ(read_options(environment({{"SMA_SYMMETRIC_SIZE", "2m"}})).value().symmetric_size, std::size_t{2} << 20);
  EXPECT_EQ(
      read_options(environment({{"SMA_SYMMETRIC_SIZE", "2m"}, {"SHMEM_SYMMETRIC_SIZE", "4m"}})).value().symmetric_size,
      std::size_t{4} << 20);
}

TEST(Options, MalformedValuesAreErrorsThatNameVariableAndValue) {
  const std::multimap<std::string, std::string> bad{{"SHMEM_SYMMETRIC_SIZE", "-1"},
                                                    {"SHMEM_SYMMETRIC_SIZE", "20kk"},
                                                    {"SHMEM_SYMMETRIC_SIZE", "1x"},
                                                    {"SHMEM_SYMMETRIC_SIZE", ""},
                                                    {"SHMEM_SYMMETRIC_SIZE", "nan"},
                                                    {"SHMEM_SYMMETRIC_SIZE", "1e30g"},
                                                    {"SHMEM_SYMMETRIC_SIZE", "12 m"},
                                                    {"SHMEM_SYMMETRIC_GLOBALS", "on"},
                                                    {"SHMEM_BARRIER_ALGORITHM", "fast"},
                                                    {"SHMEM_GBA", "yes"},
                                                    {"SHMEM_GBA_MIN_PES", "1"},
                                                    {"SHMEM_GBA_MIN_PES", "two"},
                                                    {"SHMEM_GBA_SWITCH", std::string(64, 'x')},
                                                    {"SHMEM_BARRIER_RADIX", "1"},
                                                    {"SHMEM_BARRIER_RADIX", "9"},
                                                    {"SHMEM_BARRIER_GROUP", "-1"},
                                                    {"SHMEM_BARRIER_TIMEOUT", "-1"},
                                                    {"SHMEM_BARRIER_TIMEOUT", "soon"},
                                                    {"SHMEM_BARRIER_WARN", "often"},
                                                    {"SMA_SYMMETRIC_SIZE", "big"},
                                                    {"SHMEM_HUGEPAGES", "huge"},
                                                    {"SHMEM_HUGEPAGES", ""},
                                                    {"SHMEM_NUMA", "remote"},
                                                    {"SHMEM_BOOTSTRAP", "telepathy"},
                                                    {"SHMEM_BOOTSTRAP_TIMEOUT", "0"},
                                                    {"SHMEM_UID_RANK", "-1"},
                                                    {"SHMEM_UID_SIZE", "0"},
                                                    {"SHMEM_UID_RANK", "1x"},
                                                    {"SHMEM_UID_SESSION_ID", ""}};
  for (const auto& [name, value] : bad) {
    const auto options = read_options(environment({{name, value}}));
    ASSERT_FALSE(options) << name << "=" << value;
    EXPECT_NE(options.error().text.find(fmt::format("{}={}", name, value)), std::string::npos) << options.error().text;
  }
}

TEST(Options, SayTheLargestHeap) {
  for (const char* size : {"1e30g", "999999999999g", "9223372036854775808", "8388608t", "1e400"}) {
    const auto options = read_options(environment({{"SHMEM_SYMMETRIC_SIZE", size}}));
    ASSERT_FALSE(options) << size;
    EXPECT_NE(options.error().text.find("less than 2^63 bytes"), std::string::npos) << options.error().text;
  }
  EXPECT_EQ(read_options(environment({{"SHMEM_SYMMETRIC_SIZE", "8388607t"}})).value().symmetric_size,
            std::size_t{8388607} << 40);
}

// OpenSHMEM 1.6, section 8.
TEST(Options, OfTheSpecificationAreSetByAnyValue) {
  const auto read = [](const char* name, const char* value) { return read_options(environment({{name, value}})); };
  for (const char* value : {"", "x", "2", "-1", "on ", "offf", "01", "yes"}) {
    EXPECT_TRUE(read("SHMEM_INFO", value).value().info) << value;
    EXPECT_TRUE(read("SMA_INFO", value).value().info) << value;
    EXPECT_TRUE(read("SHMEM_VERSION", value).value().version) << value;
    EXPECT_TRUE(read("SHMEM_DEBUG", value).value().debug) << value;
  }
}

TEST(Options, InfoCanBeJson) {
  const auto read = [](const char* value) { return read_options(environment({{"SHMEM_INFO", value}})).value(); };
  EXPECT_TRUE(read("json").info);
  EXPECT_TRUE(read("json").info_json);
  EXPECT_FALSE(read("1").info_json);
  EXPECT_FALSE(read("off").info_json);
}

TEST(Options, SwitchesAcceptTheUsualWordsOnly) {
  const auto read = [](const char* name, const char* value) { return read_options(environment({{name, value}})); };
  for (const char* on : {"1", "on", "yes", "true", "TRUE"}) {
    EXPECT_TRUE(read("SHMEM_PROGRESS_THREAD", on).value().progress_thread) << on;
    EXPECT_TRUE(read("SHMEM_INFO", on).value().info) << on;
    EXPECT_TRUE(read("SHMEM_VERSION", on).value().version) << on;
    EXPECT_TRUE(read("SMA_DEBUG", on).value().debug) << on;
  }
  for (const char* off : {"0", "off", "no", "false", "Off"}) {
    EXPECT_FALSE(read("SHMEM_PROGRESS_THREAD", off).value().progress_thread) << off;
    EXPECT_FALSE(read("SMA_INFO", off).value().info) << off;
    EXPECT_FALSE(read("SHMEM_VERSION", off).value().version) << off;
    EXPECT_FALSE(read("SHMEM_DEBUG", off).value().debug) << off;
  }
  const std::string name = "SHMEM_PROGRESS_THREAD";
  for (const std::string value : {"", "x", "2", "-1", "on ", "offf", "01"}) {
    const auto options = read(name.c_str(), value.c_str());
    ASSERT_FALSE(options) << name << "=" << value;
    EXPECT_NE(options.error().text.find(fmt::format("{}={} is not ", name, value)), std::string::npos)
        << options.error().text;
  }
}

TEST(Options, ChoosePagesAndTheirPlace) {
  const auto pages = [](const char* text) {
    return read_options(environment({{"SHMEM_HUGEPAGES", text}})).value().placement.pages;
  };
  EXPECT_EQ(read_options(environment({})).value().placement.pages, HugePages::kAuto);
  EXPECT_EQ(pages("auto"), HugePages::kAuto);
  EXPECT_EQ(pages("hugetlb"), HugePages::kHugetlb);
  EXPECT_EQ(pages("thp"), HugePages::kThp);
  EXPECT_EQ(pages("none"), HugePages::kNone);
  const auto numa = [](const char* text) {
    return read_options(environment({{"SHMEM_NUMA", text}})).value().placement.numa;
  };
  EXPECT_EQ(read_options(environment({})).value().placement.numa, NumaPolicy::kLocal);
  EXPECT_EQ(numa("local"), NumaPolicy::kLocal);
  EXPECT_EQ(numa("interleave"), NumaPolicy::kInterleave);
  EXPECT_EQ(numa("none"), NumaPolicy::kNone);
}

TEST(Options, CanRequireRdma) {
  const auto read = [](const char* text) { return read_options(environment({{"SHMEM_NETWORK_REQUIRE", text}})); };
  EXPECT_EQ(read_options(environment({})).value().network_require, NetworkUse::kAny);
  EXPECT_EQ(read("any").value().network_require, NetworkUse::kAny);
  EXPECT_EQ(read("rdma").value().network_require, NetworkUse::kRdma);
  EXPECT_FALSE(read("tcp"));
}

TEST(Options, ChooseABootstrap) {
  const auto kind = [](const char* text) {
    return read_options(environment({{"SHMEM_BOOTSTRAP", text}})).value().bootstrap;
  };
  EXPECT_EQ(kind(""), BootstrapKind::kAuto);
  EXPECT_EQ(kind("auto"), BootstrapKind::kAuto);
  EXPECT_EQ(kind("local"), BootstrapKind::kLocal);
  EXPECT_EQ(kind("uid"), BootstrapKind::kUid);
  EXPECT_EQ(kind("pmix"), BootstrapKind::kPmix);
  EXPECT_EQ(kind("mpi"), BootstrapKind::kMpi);
}

TEST(Settings, ListEachVariableWithItsValueAndSource) {
  const auto settings = shmem::read_settings(environment({{"SHMEM_GBA", "off"},
                                                          {"SMA_SYMMETRIC_SIZE", "2m"},
                                                          {"SHMEM_GBA_MIN_PES", "one"},
                                                          {"SHMEM_UID_SECRET", "tell-nobody"}}));
  ASSERT_EQ(settings.size(), shmem::option_table().size());
  std::map<std::string, shmem::Setting> by_name;
  for (const auto& setting : settings) {
    by_name[setting.spec->name] = setting;
  }
  EXPECT_EQ(by_name["SHMEM_GBA"].value + " " + by_name["SHMEM_GBA"].source, "off environment");
  EXPECT_EQ(by_name["SHMEM_SYMMETRIC_SIZE"].value + " " + by_name["SHMEM_SYMMETRIC_SIZE"].source,
            "2m SMA_SYMMETRIC_SIZE");
  EXPECT_EQ(by_name["SHMEM_BOOTSTRAP"].value + " " + by_name["SHMEM_BOOTSTRAP"].source, "auto default");
  EXPECT_EQ(by_name["SHMEM_UID_SECRET"].value, "...");
  ASSERT_TRUE(by_name["SHMEM_GBA_MIN_PES"].problem);
  EXPECT_NE(by_name["SHMEM_GBA_MIN_PES"].problem->find("SHMEM_GBA_MIN_PES=one"), std::string::npos);
  EXPECT_FALSE(by_name["SHMEM_GBA"].problem);
}

TEST(OptionTable, NamesTheUnitOfEachNumberThatHasOne) {
  for (const shmem::OptionSpec& spec : shmem::option_table()) {
    const std::string kind = spec.kind;
    const char* const unit = kind == "seconds" ? "seconds" : kind == "size" ? "bytes" : "";
    EXPECT_THAT(spec.help, ::testing::HasSubstr(unit)) << spec.name;
  }
}

}  // namespace

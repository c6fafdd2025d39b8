// SPDX-License-Identifier: Apache-2.0
// kv_shuffle and the files of Ascend SHMEM's example, and examples/kv_shuffle.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/integration/kv/kv_program_jobs.hpp"

namespace {

using kv_jobs::expect_failure;
using kv_jobs::shuffle;
using test_support::Outcome;
using testing::HasSubstr;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string numbers(const std::vector<std::int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)};
}

class KvFiles : public testing::Test {
 protected:
  /// Blocks of 1 KiB.
  static std::vector<std::string> small(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--heads", "1", "--head-dim", "8"});
    return arguments;
  }
  void generate(int pes) {
    const Outcome outcome = shuffle(pes, "off", small({"--generate", folder_}));
    ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  }
  [[nodiscard]] Outcome import(int pes) const {
    return shuffle(pes, "off", small({"--import", folder_, "--check", "--repeats", "2"}));
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] bool has_outputs() const { return std::filesystem::exists(file("k_cache_output_pe_0.bin")); }
  void expect_outputs_as_golden(int pes) const {
    for (int pe = 0; pe < pes; ++pe) {
      for (const std::string cache : {"k", "v"}) {
        const auto content = [&](const std::string& kind) {
          return read(file(cache).append("_cache_").append(kind) + "_pe_" + std::to_string(pe) + ".bin");
        };
        EXPECT_EQ(content("output").size(), 80U * 1024U);
        EXPECT_EQ(content("output") == content("golden"), true) << cache << pe;
      }
    }
  }

  test_support::TempDir dir_;
  std::string folder_ = dir_.file("files");
};

TEST_F(KvFiles, AreImportedAndExported) {
  for (const int pes : {1, 2, 3}) {
    generate(pes);
    const Outcome outcome = import(pes);
    EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("caches is as in the golden files"));
    expect_outputs_as_golden(pes);
  }
  EXPECT_NE(read(file("k_cache_input_pe_0.bin")), read(file("k_cache_output_pe_0.bin")));
}

TEST_F(KvFiles, OfATraceAreExportedAndImportedAgain) {
  const auto shape = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--page", "16", "--heads", "2", "--dtype", "bf16", "--cores", "2", "--check"});
    return arguments;
  };
  const Outcome out = shuffle(3, "off", shape({"--export", folder_, "--blocks", "40"}));
  ASSERT_TRUE(out.exit.clean()) << out.output;
  const std::string output = read(file("v_cache_output_pe_2.bin"));
  EXPECT_EQ(output.size(), 40U * 2 * 16 * 128 * 2);
  const Outcome in = shuffle(3, "off", shape({"--import", folder_}));
  EXPECT_TRUE(in.exit.clean()) << in.output;
  EXPECT_EQ(output == read(file("v_cache_output_pe_2.bin")), true);
}

TEST_F(KvFiles, AreCheckedByInputsAndTablesWithoutGoldenFiles) {
  generate(2);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().filename().string().find("golden") != std::string::npos) {
      std::filesystem::remove(entry.path());
    }
  }
  const Outcome outcome = import(2);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("caches is as inputs and tables say"));
}

TEST_F(KvFiles, ThatDifferFromGoldenFilesAreNamed) {
  generate(2);
  std::string golden = read(file("v_cache_golden_pe_1.bin"));
  golden[3 * 1024 + 5] ^= 1;
  write(file("v_cache_golden_pe_1.bin"), golden);
  expect_failure(import(2), 1,
                 "byte 5 of block 3 of the V cache of PE 1 is not that of " + file("v_cache_golden_pe_1.bin"));
}

struct BadFile {
  const char* name;
  const char* file;
  std::optional<std::string> content;  // nothing: the file is missing
  const char* message;                 // follows the file's name
};

void PrintTo(const BadFile& bad, std::ostream* out) {
  *out << bad.name;
}

class KvBadFiles : public KvFiles, public testing::WithParamInterface<BadFile> {};

TEST_P(KvBadFiles, AreNamedBeforeAnythingMoves) {
  const BadFile& bad = GetParam();
  // PE 1 sends blocks 0 to 2 to PE 0.
  generate(2);
  write(file("pair_list.bin"), numbers({1, 1, 0, 0}));
  write(file("block_num_pe_1.bin"), numbers({3}));
  write(file("src_block_table_pe_1.bin"), numbers({0, 1, 2}));
  write(file("dst_block_table_pe_1.bin"), numbers({70, 71, 72}));
  std::filesystem::remove(file(bad.file));
  if (bad.content) {
    write(file(bad.file), *bad.content);
  }
  expect_failure(import(2), 1, file(bad.file) + bad.message);
  EXPECT_FALSE(has_outputs());
}

std::vector<BadFile> bad_files() {
  return {
      {"NoPairs", "pair_list.bin", std::nullopt, ": No such file or directory"},
      {"FewPairs", "pair_list.bin", numbers({1, 1}),
       " has 16 bytes, and should have 32 bytes: two int64 for each of 2"},
      {"NotMutual", "pair_list.bin", numbers({1, 1, 1, 0}), " is wrong: row 0 says {1, 1}, but row 1 says {1, 0}"},
      {"NoSuchPe", "pair_list.bin", numbers({2, 1, 0, 0}), " is wrong: row 0 says {2, 1}, and there are PEs 0 to 1"},
      {"BothSend", "pair_list.bin", numbers({1, 0, 0, 0}), " is wrong: row 0 says {1, 0} and row 1 says {0, 0}"},
      {"NoCount", "block_num_pe_1.bin", std::nullopt, ": No such file or directory"},
      {"LongCount", "block_num_pe_1.bin", numbers({3, 3}), " has 16 bytes, and should have 8 bytes: one int64"},
      {"NegativeCount", "block_num_pe_1.bin", numbers({-1}), " says -1, and the caches have 80 blocks"},
      {"HugeCount", "block_num_pe_1.bin", numbers({81}), " says 81, and the caches have 80 blocks"},
      {"ShortTable", "src_block_table_pe_1.bin", numbers({0, 1}), " has 16 bytes, and should have 24 bytes"},
      {"CutTable", "dst_block_table_pe_1.bin", numbers({70, 71, 72}).substr(0, 23), " has 23 bytes"},
      {"NoSource", "src_block_table_pe_1.bin", numbers({0, 1, 80}),
       " says 80 in entry 2, and the caches have blocks 0"},
      {"NoDestination", "dst_block_table_pe_1.bin", numbers({-7, 1, 2}), " says -7 in entry 0"},
      {"Twice", "dst_block_table_pe_1.bin", numbers({70, 71, 70}), " says block 70 twice"},
      {"NoInput", "v_cache_input_pe_1.bin", std::nullopt, ": No such file or directory"},
      {"ShortInput", "k_cache_input_pe_1.bin", std::string(79UL * 1024, 'k'),
       " has 80896 bytes, and should have 81920"},
      {"OddInput", "k_cache_input_pe_0.bin", std::string(1000, 'k'),
       " has 1000 bytes, which is not one or more blocks"},
      {"EmptyInput", "k_cache_input_pe_0.bin", "", " has 0 bytes, which is not one or more blocks of 1024 bytes"},
  };
}
INSTANTIATE_TEST_SUITE_P(Files, KvBadFiles, testing::ValuesIn(bad_files()),
                         [](const auto& each) { return each.param.name; });

TEST_F(KvFiles, RefuseOptionsThatTheyCannotRepresent) {
  expect_failure(shuffle(1, "off", {"--export", folder_, "--layers", "2"}), 2, "--export: those files have one layer");
  expect_failure(shuffle(1, "off", {"--import", folder_, "--trace", "x"}), 2, "--trace does not go with --import");
  expect_failure(shuffle(1, "off", {"--import", folder_, "--export", folder_}), 2, " excludes --");
  expect_failure(shuffle(1, "off", {"--export", folder_, "--rounds", "3"}), 2, "--rounds does not go with --export");
}

TEST_F(KvFiles, ThatCannotBeWrittenAreNamed) {
  write(dir_.file("file"), "");
  expect_failure(shuffle(2, "off", {"--generate", dir_.file("file")}), 1, dir_.file("file"));
}

class KvExample : public KvFiles {
 protected:
  [[nodiscard]] Outcome run(int pes) const {
    return test_support::run({KV_EXAMPLE "/scripts/run.sh", std::to_string(pes), folder_},
                             {"OSHRUN=" + test_support::program("oshrun"),
                              "KV_SHUFFLE=" + test_support::program("kv_shuffle"), "SHMEM_GBA=off"},
                             kv_jobs::kLimit);
  }
};

TEST_F(KvExample, RunsOnAnyNumberOfPes) {
  for (const int pes : {3, 8}) {
    const Outcome outcome = run(pes);
    EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
    EXPECT_THAT(outcome.output,
                HasSubstr("All " + std::to_string(2 * pes) + " caches of " + std::to_string(pes) + " PEs are correct"));
    std::filesystem::remove_all(folder_);
  }
}

TEST_F(KvExample, IsRunFromItsFolderAndCopiesByEitherPath) {
  for (const char* path : {"auto", "direct", "scratch"}) {
    const Outcome outcome = test_support::run(
        {"bash", "-c", "cd " KV_EXAMPLE " && bash scripts/run.sh 2"},
        {"OSHRUN=" + test_support::program("oshrun"), "KV_SHUFFLE=" + test_support::program("kv_shuffle"),
         "SHMEM_GBA=off", std::string("KV_PATH=") + path},
        kv_jobs::kLimit);
    EXPECT_TRUE(outcome.exit.clean()) << path << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("All 4 caches of 2 PEs are correct"));
  }
  const Outcome wrong = test_support::run({"bash", "-c", "cd " KV_EXAMPLE " && bash scripts/run.sh 2"},
                                          {"OSHRUN=" + test_support::program("oshrun"),
                                           "KV_SHUFFLE=" + test_support::program("kv_shuffle"), "KV_PATH=slow"},
                                          kv_jobs::kLimit);
  EXPECT_EQ(wrong.exit.code, 1);
  EXPECT_THAT(wrong.output, HasSubstr("slow"));
}

TEST_F(KvExample, FailsWithAWrongByteOrAMissingFileOrTheProgram) {
  ASSERT_TRUE(run(2).exit.clean());
  const std::string golden = file("k_cache_golden_pe_1.bin");
  std::string content = read(golden);
  content.back() ^= 1;
  write(golden, content);
  Outcome outcome = run(2);
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("PE 1: the K cache is wrong\nrun.sh: 1 of 4 caches are wrong"));
  std::filesystem::remove(golden);
  outcome = run(2);
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("there is no " + golden));
  write(file("pair_list.bin"), "");
  outcome = run(2);
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("run.sh: kv_shuffle failed"));
}

}  // namespace

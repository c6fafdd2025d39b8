// SPDX-License-Identifier: Apache-2.0
// What OpenSHMEM 1.6 says about jobs, the environment and the header: see also spec_pes.c.
#include <algorithm>
#include <fstream>

#include "shmem/config/options.hpp"
#include "tests/support/pe.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{120};

class Spec : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  static auto run_case(const char* name, const std::vector<std::string>& environment = {}) {
    const auto [language, pes] = GetParam();
    return run_pes(pes, "off", {std::string("openshmem_") + language + "_pes", "spec", name}, environment, kLimit);
  }
};

TEST_P(Spec, IsKept) {
  const auto job = run_case("all");
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_P(Spec, ToleratesWithAWarningWhatOthersTolerate) {
  const int pes = std::get<1>(GetParam());
  const auto job = run_case("tolerated");
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("PE 0: shmem_free(offset 64), where no live block begins"));
  EXPECT_THAT(job.output, HasSubstr("nothing is freed"));
  EXPECT_THAT(job.output, HasSubstr("PE 0: shmem_align: the alignment 63 is not a power of two; the next one is used"));
  EXPECT_THAT(job.output, HasSubstr("PE 0: shmem_long_wait_until: the word is not aligned to its size, 8 bytes"));
  if (pes > 1) {
    EXPECT_THAT(job.output, HasSubstr("PE 1: shmem_long_sum_to_all: this PE is not in the set"));
    EXPECT_THAT(job.output, Not(HasSubstr("PE 1: shmem_align")));  // collective calls warn once
  }
  // Checking mode finds it.
  EXPECT_FALSE(run_case("tolerated", {"SHMEM_DEBUG=1"}).exit.clean());
}

TEST_P(Spec, GlobalExitEndsTheCallerAsAProgramEnds) {
  const auto [language, pes] = GetParam();
  auto command =
      oshrun(pes, "off", {test_program(std::string("openshmem_") + language + "_pes"), "spec", "global-exit"});
  command.insert(command.begin() + 1, {"--grace", "60"});  // the PE has time to end
  const auto job = run(command, {}, kLimit);
  const int last = std::get<1>(GetParam()) - 1;
  EXPECT_EQ(job.exit.code, 7) << job.output;
  EXPECT_THAT(job.output, HasSubstr("not flushed by PE " + std::to_string(last)));
  EXPECT_THAT(job.output, HasSubstr("exit handler of PE " + std::to_string(last) + "\n"));
}

TEST_P(Spec, InitThreadReturnsItsError) {
  const auto job = run_case("failing-start", {"SHMEM_SYMMETRIC_SIZE=20kk"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("SHMEM_SYMMETRIC_SIZE=20kk is not a number"));
  EXPECT_THAT(job.output, HasSubstr("shmem_init_thread has returned, 0"));
}

TEST_P(Spec, TheHeapMayHaveSizeZero) {
  const auto job = run_case("start", {"SHMEM_SYMMETRIC_SIZE=0"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

INSTANTIATE_TEST_SUITE_P(All, Spec, Combine(Values("c", "cxx"), Values(1, 3)), kNameByParameters);

// Section 8.
TEST(SpecEnvironment, AnyValueOfAVariableIsGoodAndInfoExplainsAllVariables) {
  const auto start = [](const std::vector<std::string>& environment) {
    return run_pes(2, "off", {"openshmem_c_pes", "spec", "start"}, environment, kLimit);
  };
  const auto info = start({"SHMEM_INFO=please"});
  EXPECT_TRUE(info.exit.clean()) << info.output;
  // Those of the specification with their meanings; the others are in shmem_info, unless they are set.
  constexpr std::array<std::string_view, 4> kOfTheSpecification{"SHMEM_VERSION", "SHMEM_INFO", "SHMEM_SYMMETRIC_SIZE",
                                                                "SHMEM_DEBUG"};
  for (const auto& option : shmem::option_table()) {
    if (std::ranges::find(kOfTheSpecification, option.name) != kOfTheSpecification.end()) {
      EXPECT_THAT(info.output, HasSubstr(std::string("shmem:   ") + option.name + "="));
      EXPECT_THAT(info.output, HasSubstr(option.help));
    }
  }
  EXPECT_THAT(info.output, HasSubstr("(shmem_info lists all " + std::to_string(shmem::option_table().size()) + ")"));
  EXPECT_THAT(info.output, HasSubstr("SHMEM_INFO=please (environment)"));
  const auto version = start({"SHMEM_VERSION="});
  EXPECT_TRUE(version.exit.clean()) << version.output;
  EXPECT_THAT(version.output, HasSubstr("shmem: libshmem "));
  EXPECT_THAT(start({"SHMEM_DEBUG=7"}).output, HasSubstr("shmem: PE 1: ends"));
}

/// Compiles a source with oshcc or oshc++. Returns what the compiler says.
auto compile(const std::string& text, const char* wrapper, std::vector<std::string> options) {
  TempDir dir;
  const std::string source = dir.file(std::string(wrapper) == "oshcc" ? "source.c" : "source.cpp");
  std::ofstream(source) << text;
  std::vector<std::string> command{program(wrapper)};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(source);
  return run(command, {"LC_ALL=C"}, kLimit);
}

TEST(SpecHeader, AGenericCallWithAWrongTypeIsRefusedByName) {
  for (const char* call : {"shmem_put(&wrong, &wrong, 1, 0)", "shmem_put(SHMEM_CTX_DEFAULT, &wrong, &wrong, 1, 0)",
                           "shmem_atomic_inc(&wrong, 0)", "shmem_wait_until(&wrong, SHMEM_CMP_EQ, wrong)",
                           "shmem_sum_reduce(SHMEM_TEAM_WORLD, &wrong, &wrong, 1)"}) {
    const auto compiled =
        compile(std::string("#include <shmem.h>\nstatic void* wrong;\nvoid f(void) { ") + call + "; }\n", "oshcc",
                {"-std=c11", "-fsyntax-only"});
    EXPECT_NE(compiled.exit.code, 0) << call;
    const std::string name = std::string(call).substr(0, std::string(call).find('('));
    EXPECT_THAT(compiled.output, HasSubstr(name + " has no form for an argument of this type"));
  }
}

TEST(SpecHeader, GlobalExitIsKnownNotToReturn) {
  const std::string text = "#include <shmem.h>\nint f(void);\nint f(void) { shmem_global_exit(1); }\n";
  for (const char* wrapper : {"oshcc", "oshc++"}) {
    const auto compiled = compile(text, wrapper, {"-Wall", "-Werror", "-fsyntax-only", "-O1"});
    EXPECT_TRUE(compiled.exit.clean()) << compiled.output;
  }
}

/// In alphabetical order.
std::vector<std::string> macros_of(const std::vector<std::string>& headers) {
  std::string text;
  for (const auto& header : headers) {
    text += "#include <" + header + ">\n";
  }
  const auto compiled = compile(text, "oshcc", {"-std=c11", "-E", "-dM"});
  EXPECT_TRUE(compiled.exit.clean()) << compiled.output;
  std::vector<std::string> words;
  for (const auto& match : all_matches(compiled.output, "#define ([A-Za-z0-9_]+)")) {
    words.push_back(match[1]);
  }
  std::sort(words.begin(), words.end());
  return words;
}

// Section 5: the header contains only the names of the specification, which begin with these prefixes, and those by
// which programs recognise an implementation.
TEST(SpecHeader, BringsNoMacrosOfItsOwn) {
  const auto without = macros_of({"stddef.h", "stdint.h"});
  const auto with = macros_of({"shmem.h"});
  EXPECT_GT(with.size(), without.size() + 100);
  for (const auto& name : with) {
    const bool ours = name.starts_with("SHMEM") || name.starts_with("_SHMEM_") || name.starts_with("shmem_") ||
                      name.starts_with("LIBSHMEM_") || name == "OSHMEM_SPEC_VERSION";
    EXPECT_TRUE(ours || std::binary_search(without.begin(), without.end(), name)) << name;
    EXPECT_FALSE(name.starts_with("SHMEMX")) << name;
  }
}

TEST(SpecHeader, DeclaresNoCallsButThoseOfTheSpecification) {
  for (const char* wrapper : {"oshcc", "oshc++"}) {
    const auto compiled = compile("#include <shmem.h>\n", wrapper, {"-E", "-P"});
    EXPECT_TRUE(compiled.exit.clean()) << compiled.output;
    EXPECT_THAT(compiled.output, HasSubstr("shmem_barrier_all"));
    EXPECT_THAT(compiled.output, Not(HasSubstr("shmemx_"))) << wrapper;
    EXPECT_THAT(compiled.output, Not(HasSubstr("aclshmem"))) << wrapper;
  }
}

// Section 10.
TEST(SpecProfiling, AWrapperInCxxDefinesRoutinesAsTheSpecificationWritesThem) {
  run_clean(2, "off", {"spec_wrapper_pes"}, {}, kLimit);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The calls of shmem.h, right and wrong, made by real PEs.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/json.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

class Calls : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(Calls, DoWhatTheSpecificationSays) {
  const auto [pes, gba] = GetParam();
  run_clean(pes, gba, {"shmem_pes", "api"});
}

INSTANTIATE_TEST_SUITE_P(Jobs, Calls, Combine(Values(1, 2, 3, 4, 7), Values("off", "fake")), kNameByParameters);

TEST(Calls, WorkFromC11) {
  run_clean(3, "off", {"openshmem_c_pes", "c11"});
}

TEST(Calls, FromAscendProgramsBehaveAsInAscendShmem) {
  for (const int pes : {1, 3}) {
    TempDir dir;
    run_clean(pes, "off", {"ascend_cxx_pes", "host", dir.file("uid")}, {"SHMEM_UID_SESSION_ID=127.0.0.1:0"});
  }
}

TEST(Teams, BeyondTheDevicesGroupsRunInSoftwareAndSayWhy) {
  const auto job = run_pes(2, "fake", {"shmem_pes", "many_teams"}, {}, Seconds{240});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  // The world team has one of the 32 groups. Three rounds on two PEs: freed groups are used again.
  EXPECT_EQ(sum_of(job.output, "teams by device"), 3U * 2 * 31) << job.output;
  EXPECT_THAT(job.output, HasSubstr("reason: gba: "));
  EXPECT_THAT(job.output, HasSubstr("taken"));
}

struct Mistake {
  const char* name;
  const char* message;  // that the output must contain
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, EndTheJobWithAMessageThatNamesThem) {
  // Each PE has time to print what it has found.
  const auto job = run({program("oshrun"), "-n", "2", "--gba", "off", "--grace", "60", test_program("shmem_pes"),
                        "wrong", GetParam().name});
  EXPECT_NE(job.exit.code, 0) << job.output;
  EXPECT_EQ(job.exit.signal, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, Mistakes,
    Values(Mistake{"before-init", ": shmem_barrier_all was called before shmem_init"},
           Mistake{"after-finalize", "shmem_barrier_all was called before shmem_init or after shmem_finalize"},
           Mistake{"forked", "shmem_barrier_all was called in a process that PE 1 has forked: that is no PE"},
           Mistake{"vanish", "cannot complete: a PE has ended; it waited for PE 1 (pid "},
           Mistake{"vanish", ", exited with status 0)"}, Mistake{"nested", "PE 1 still runs"},
           Mistake{"nested", "shmem_barrier_all was called before shmem_init or after shmem_finalize"},
           Mistake{"barrier-while-open", "of team 0 is open (shmemx_barrier_arrive or _timed): end it with"},
           Mistake{"finalize-while-open", "of team 0 is open (shmemx_barrier_arrive or _timed): end it with"},
           Mistake{"malloc-sizes", "shmem: PE 0: the PEs do not make the same call on the symmetric heap"},
           Mistake{"malloc-sizes", "PE 0: shmem_malloc(64); PE 1: shmem_malloc(4096)"},
           Mistake{"malloc-sizes", "PE 0 got NULL"}, Mistake{"malloc-sizes", "PE 1 got NULL"},
           Mistake{"put-pe", "shmem_putmem: there is no PE 2"},
           Mistake{"put-address", "shmem_putmem: 8 bytes at the given address are not inside the symmetric heap"},
           Mistake{"put-size", "shmem_putmem: 18446744073709551615 bytes"},
           Mistake{"signal-pe", "shmem_signal_set: there is no PE -1"},
           Mistake{"free-global", "which is not in the symmetric heap"},
           Mistake{"compare", "shmem_signal_wait_until: 6 is not a comparison"},
           Mistake{"free", "which is not in the symmetric heap"}, Mistake{"double-free", "was it freed before?"},
           Mistake{"free-on-one", "PE 0: shmem_free(offset 0); PE 1: shmem_free(0x"},
           Mistake{"free-alone", "PE 0: in another routine; PE 1: shmem_free(offset 0)"},
           Mistake{"free-or-malloc", "PE 0: shmem_malloc(8); PE 1: shmem_free(offset 0)"},
           Mistake{"realloc-sizes", "PE 0: shmem_realloc(offset 0, 200); PE 1: shmem_realloc(offset 0, 100)"},
           Mistake{"heap-full", "set SHMEM_SYMMETRIC_SIZE"},
           Mistake{"destroy-world", "shmem_team_destroy: team 0 is predefined"},
           Mistake{"barrier-team", "17 is not a team"},
           Mistake{"barrier-no-team", "shmemx_team_barrier: SHMEM_TEAM_INVALID is not a team of this PE"},
           Mistake{"barrier-other-pointer", "shmemx_team_barrier: 0x"}, Mistake{"exit-early", "PE 1"}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::erase(name, '-');
      return name + std::to_string(test.index);
    });

TEST(ActiveSets, NameTheWordsOfAnotherLibrarysHeader) {
  const auto job = run_pes(2, "off", {"shmem_pes", "wrong", "set-words"});
  EXPECT_NE(job.exit.code, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("shmem_int_sum_to_all: its pSync begins with -1, not with SHMEM_SYNC_VALUE, 0"));
}

/// An Outcome with this output, and a code that is not 0.
auto fails_with(const Matcher<const std::string&>& output) {
  return AllOf(Field(&Outcome::exit, Field(&Exit::code, Ne(0))), Field(&Outcome::output, output));
}

TEST(Waits, EndTheJobAfterTheTimeout) {
  for (const auto& [mistake, message] :
       {std::pair{"set-alone",
                  "PE 1: shmem_barrier: the wait for the 2 PEs from PE 0 on with stride 1 timed out after [0-9]+ ms "
                  "\\(SHMEM_BARRIER_TIMEOUT\\); it waited for PE 0 \\(pid "},
        std::pair{"wait-alone",
                  "PE 1: shmem_signal_wait_until: the wait timed out after [0-9]+ ms "
                  "\\(SHMEM_BARRIER_TIMEOUT\\); there is 0, which is not GE 5 \\(at 0x"}}) {
    const auto run = [mistake = mistake](int seconds) {
      return run_pes(2, "off", {"shmem_pes", "wrong", mistake}, {"SHMEM_BARRIER_TIMEOUT=" + std::to_string(seconds)});
    };
    const auto says_it = fails_with(ContainsRegex(message));
    const auto job = with_timeouts(run, Matches(says_it));
    EXPECT_THAT(job, says_it) << job.output;
  }
}

TEST(Waits, WarnOfWhatTheyWaitFor) {
  for (const auto& [mistake, message] :
       {std::pair{"wait-alone",
                  "PE 1: shmem_signal_wait_until: the wait has taken [0-9]+ s; there is 0, which is not GE 5 "
                  "\\(at 0x[0-9a-f]+, offset 0 of the symmetric heap\\)\n"},
        std::pair{"wait-alone-in-array",
                  "PE 1: shmem_long_wait_until_all: the wait has taken [0-9]+ s; there is element 1 of 3: -7, which is "
                  "not EQ 0 \\(at 0x[0-9a-f]+\\)\n"},
        std::pair{"wait-alone-on-core",
                  "PE 1, core 0: shmem_uint64_wait_until: the wait has taken [0-9]+ s; there is 0, which is not NE 0 "
                  "\\(at 0x[0-9a-f]+, offset 0 of the symmetric heap\\)\n"},
        std::pair{"lock-kept",
                  "PE 1: shmem_set_lock: the wait has taken [0-9]+ s; there is no answer from PE 0, which has "
                  "requested the lock too\n"}}) {
    Process job(oshrun(2, "off", {test_program("shmem_pes"), "wrong", mistake}), {"SHMEM_BARRIER_WARN=0.1"});
    const std::string line = message;
    const std::string begin = line.substr(0, line.find("[0-9]"));
    ASSERT_TRUE(job.wait_for_output(begin, Seconds{120})) << mistake << job.output();
    const auto rest = [&] { return job.output().substr(job.output().find(begin)); };
    for (int i = 0; i < 6000 && rest().find('\n') == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_THAT(rest(), ContainsRegex("^" + line)) << mistake;
  }
}

/// Every PE finds the missing one, also those that wait for others which wait for it.
TEST(Waits, InActiveSetsNameThePeThatDoesNotCome) {
  for (const auto& [mistake, warning] :
       {std::pair{"set-without-3-in-barrier", "shmem: PE 0: shmem_barrier of the 6 PEs from PE 0 on with stride 1"},
        std::pair{"set-without-3-in-sum",
                  "shmem: PE 1: shmem_int_sum_to_all of the 3 PEs from PE 1 on with stride 2"}}) {
    const auto run = [mistake = mistake](int seconds) {
      return run_pes(6, "off", {"shmem_pes", "wrong", mistake},
                     {"SHMEM_BARRIER_WARN=0.2", "SHMEM_BARRIER_TIMEOUT=" + std::to_string(seconds)});
    };
    const auto names_it = fails_with(AllOf(
        ContainsRegex(std::string(warning) + " has taken [0-9]+ s; it waits for PE 3 \\(pid [0-9]+ on [^,]*\\)\n"),
        ContainsRegex("timed out after [0-9]+ ms \\(SHMEM_BARRIER_TIMEOUT\\); it waited for PE 3 \\(pid "
                      "[0-9]+ on [^,]*\\)\n")));
    const auto job = with_timeouts(run, Matches(names_it));
    EXPECT_THAT(job, names_it) << job.output;
  }
}

TEST(Start, ReportsAFailureOfAllPesOnce) {
  const auto job = run_pes(4, "off", {"shmem_pes", "wrong", ""}, {"SHMEM_SYMMETRIC_SIZE=100000t"});
  EXPECT_NE(job.exit.code, 0) << job.output;
  const auto first = job.output.find("a symmetric heap of ");
  EXPECT_NE(first, std::string::npos) << job.output;
  EXPECT_EQ(first, job.output.rfind("a symmetric heap of ")) << job.output;
}

TEST(Start, TellsOnceOfVariablesThatItDoesNotKnow) {
  const std::vector<std::string> environment{"SHMEM_SYMETRIC_SIZE=8m", "SHMEM_SYMMETRIC_HEAP_SIZE=8m",
                                             "SHMEM_NAME=/mine"};
  const auto job = run_clean(4, "off", {"shmem_pes", "wrong", "no-finalize"}, environment);
  EXPECT_EQ(count_of(job.output, "SHMEM_SYMETRIC_SIZE is ignored: is SHMEM_SYMMETRIC_SIZE meant?"), 1) << job.output;
  EXPECT_EQ(count_of(job.output, "SHMEM_SYMMETRIC_HEAP_SIZE is ignored: it is Open MPI's"), 1) << job.output;
  EXPECT_THAT(job.output, Not(HasSubstr("SHMEM_NAME")));
  const auto shown = run({program("shmem_info")}, environment);
  ASSERT_TRUE(shown.exit.clean()) << shown.output;
  EXPECT_EQ(count_of(shown.output, " is ignored: "), 2) << shown.output;
}

TEST(Heap, ThatIsFullIsReportedOnce) {
  const auto job = run_clean(4, "off", {"shmem_pes", "wrong", "full-heap"}, {"SHMEM_SYMMETRIC_SIZE=8m"});
  EXPECT_EQ(count_of(job.output, "PE 0: shmem_malloc(1073741824): the symmetric heap has no room"), 1) << job.output;
  EXPECT_EQ(count_of(job.output, "has no room"), 1) << job.output;
  EXPECT_EQ(count_of(job.output, "is more bytes than can be addressed"), 1) << job.output;
  EXPECT_EQ(count_of(job.output, " got NULL"), 4) << job.output;
}

TEST(Calls, AProgramMayReturnFromMainWithoutFinalize) {
  const auto job = run_clean(3, "off", {"shmem_pes", "wrong", "no-finalize"}, {"SHMEM_DEBUG=1"});
  for (const char* line : {"PE 0: exits without shmem_finalize", "PE 2: ends", "PE 1: is member 1 of team 0: 3 PEs"}) {
    EXPECT_THAT(job.output, HasSubstr(line));
  }
}

TEST(Info, PrintsEveryVariableAndSaysWhatIsWrong) {
  const auto shown = run({program("shmem_info"), "--json"}, {"SHMEM_GBA=off", "SMA_SYMMETRIC_SIZE=3m"});
  ASSERT_TRUE(shown.exit.clean()) << shown.output;
  const auto all = Json::parse(shown.output);
  EXPECT_EQ(all["schema"], 1);
  EXPECT_GT(all["variables"].size(), 10U);
  const auto& heap = all["variables"][1];
  EXPECT_EQ(heap["name"], "SHMEM_SYMMETRIC_SIZE");
  EXPECT_EQ(heap["value"], "3m");
  EXPECT_EQ(heap["from"], "SMA_SYMMETRIC_SIZE");
  const auto wrong = run({program("shmem_info")}, {"SHMEM_BARRIER_TIMEOUT=soon"});
  EXPECT_EQ(wrong.exit.code, 1);
  EXPECT_THAT(wrong.output, HasSubstr("SHMEM_BARRIER_TIMEOUT=soon is not"));
}

TEST(Info, TellsAllAboutOneVariable) {
  for (const char* name : {"SHMEM_BARRIER_WARN", "BARRIER_WARN"}) {
    const auto shown = run({program("shmem_info"), name}, {"SHMEM_BARRIER_WARN=5"});
    ASSERT_TRUE(shown.exit.clean()) << shown.output;
    EXPECT_THAT(shown.output,
                testing::StartsWith("SHMEM_BARRIER_WARN=5 (environment)\n    seconds after which a barrier"));
    EXPECT_THAT(shown.output, testing::EndsWith("default: 30.\n"));
  }
  const auto wrong = run({program("shmem_info"), "SHMEM_BARIER_WARN"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_EQ(wrong.output,
            "shmem_info: SHMEM_BARIER_WARN is not a variable of libshmem: is SHMEM_BARRIER_WARN meant?\n");
}

TEST(Info, TellsWhatDiffersFromTheDefaults) {
  const auto shown = run({program("shmem_info"), "--changed"}, {"SHMEM_GBA=off", "SHMEM_CONFIG_FILE=none"});
  ASSERT_TRUE(shown.exit.clean()) << shown.output;
  EXPECT_THAT(shown.output,
              MatchesRegex("SHMEM_CONFIG_FILE +none +environment  [^\n]*\nSHMEM_GBA +off +environment  [^\n]*\n"));
  const auto json = run({program("shmem_info"), "--changed", "--json"}, {"SHMEM_GBA=off", "SHMEM_CONFIG_FILE=none"});
  EXPECT_EQ(Json::parse(json.output)["variables"].size(), 2U) << json.output;
}

TEST(Info, HasNoLineLongerThanTheTerminal) {
  const auto widest = [](const std::string& text) {
    std::istringstream lines(text);
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) {
      most = std::max(most, line.size());
    }
    return most;
  };
  const std::string command = "stty cols 80; " + program("shmem_info") + " SHMEM_BARRIER_WARN SHMEM_CONFIG_FILE; " +
                              program("shmem_info") + " --changed; " + program("shmem_info");
  const auto shown = run({"script", "-qec", command, "/dev/null"}, {"SHMEM_HUGEPAGES=auto"});
  if (shown.output.find("SHMEM_BARRIER_WARN=30") == std::string::npos) {
    GTEST_SKIP() << "script and stty make no terminal here: " << shown.output;
  }
  EXPECT_LE(widest(shown.output), 81U) << shown.output;  // with a carriage return
}

TEST(Info, TellsHowTheLibraryWasBuilt) {
  const auto text = run({program("shmem_info"), "--build"});
  ASSERT_TRUE(text.exit.clean()) << text.output;
  EXPECT_THAT(text.output, HasSubstr("version       " SHMEM_VERSION "\n"));
  const auto shown = run({program("shmem_info"), "--build", "--json"}, {"SHMEM_GBA=wrong"});
  ASSERT_TRUE(shown.exit.clean()) << shown.output;
  const auto all = Json::parse(shown.output);
  EXPECT_EQ(all["schema"], 1);
  const auto& build = all["build"];
  EXPECT_EQ(build["version"], SHMEM_VERSION);
  EXPECT_THAT(build["commit"].get<std::string>(), MatchesRegex("unknown|[0-9a-f]{12,}(-dirty)?"));
  for (const char* library : {"ucx", "pmix"}) {
    const auto& here = build["libraries"][library];
    EXPECT_EQ(here["version"].is_null(), here.contains("problem")) << here;
    // The headers that it was built with come with a library of that version.
    EXPECT_EQ(build[library].is_null(), here["version"].is_null()) << build;
  }
  // The table that CMake ended with.
  EXPECT_EQ(build["parts"].size(), 8U) << build;
  EXPECT_EQ(build["parts"]["GBA_TESTS"], "built");
  EXPECT_EQ(build["parts"]["SHMEM_UCX"] == "built", !build["ucx"].is_null()) << build;
  EXPECT_THAT(text.output, testing::ContainsRegex("\nThe tests +built\n"));
}

TEST(Info, TellsWhereEachValueComesFrom) {
  const TempDir dir;
  const std::string file = dir.file("conf");
  std::ofstream(file)
      << "# of this test\n\nSHMEM_GBA = off\nSHMEM_SYMMETRIC_SIZE=7m  # small\nSHMEM_UID_SECRET = hush\n";
  const std::vector<std::string> variables{"SHMEM_CONFIG_FILE=" + file, "SMA_SYMMETRIC_SIZE=3m", "SHMEM_INFO=1"};
  const auto shown = run({program("shmem_info"), "--json"}, variables);
  ASSERT_TRUE(shown.exit.clean()) << shown.output;
  const auto all = Json::parse(shown.output);
  EXPECT_EQ(all["configuration_files"], Json::parse(R"([{"path": ")" + file + R"(", "state": "read"}])"));
  std::map<std::string, std::string> found;
  for (const auto& variable : all["variables"]) {
    found[variable["name"]] = variable["value"].get<std::string>() + " " + variable["from"].get<std::string>();
  }
  EXPECT_EQ(found["SHMEM_GBA"], "off " + file + ":3");
  EXPECT_EQ(found["SHMEM_SYMMETRIC_SIZE"], "3m SMA_SYMMETRIC_SIZE");
  EXPECT_EQ(found["SHMEM_UID_SECRET"], "... " + file + ":5");
  EXPECT_EQ(found["SHMEM_NUMA"], "local default");
  const auto job = run_clean(1, "", {"barrier_pes", "1"}, variables);
  EXPECT_THAT(job.output, HasSubstr("SHMEM_GBA=off (" + file + ":3)"));
}

TEST(Info, AJobDoesNotStartWithAWrongConfigurationFile) {
  const TempDir dir;
  const std::string file = dir.file("conf");
  std::ofstream(file) << "SHMEM_GBA = of\n";
  for (const std::string& name : {file, dir.path()}) {
    const std::vector<std::string> variables{"SHMEM_CONFIG_FILE=" + name};
    const std::string problem = name == file ? file + ":1: SHMEM_GBA=of is not auto, off or require"
                                             : "cannot read the configuration file " + name + ": it is a folder";
    const auto shown = run({program("shmem_info")}, variables);
    EXPECT_EQ(shown.exit.code, 1);
    EXPECT_THAT(shown.output, HasSubstr(problem));
    const auto job = run_pes(1, "", {"barrier_pes", "1"}, variables);
    EXPECT_NE(job.exit.code, 0);
    EXPECT_THAT(job.output, HasSubstr(problem));
  }
}

TEST(Info, ReadsTheFileInTheUsersFolder) {
  const TempDir dir;
  std::ofstream(dir.file("libshmem.conf")) << "SHMEM_NUMA = none\n";
  const std::string file = dir.file("libshmem.conf");
  const std::vector<std::string> command{"/usr/bin/env", "-u", "SHMEM_CONFIG_FILE", program("shmem_info"), "--json"};
  const auto shown = run(command, {"XDG_CONFIG_HOME=" + dir.path()});
  const auto all = Json::parse(shown.output);
  const auto& files = all["configuration_files"];
  ASSERT_EQ(files.size(), 2U) << files;
  EXPECT_EQ(files[0]["path"], "/etc/libshmem.conf");
  EXPECT_EQ(files[1], Json::parse(R"({"path": ")" + file + R"(", "state": "read"})"));
  EXPECT_THAT(shown.output, HasSubstr(file + ":1"));
}

/// A program that root starts and that changes to another user has the rights of both.
TEST(Info, OfASetUserIdProgramReadsNoFileOfTheUser) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a program to another user";
  }
  const TempDir dir;
  const std::string copy = dir.file("shmem_info");
  std::filesystem::copy_file(program("shmem_info"), copy);
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(copy.c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(::chmod(copy.c_str(), 04755), 0);
  const auto shown = run({copy, "--json"}, {"SHMEM_CONFIG_FILE=/no/such/file", "XDG_CONFIG_HOME=" + dir.path()});
  const auto all = Json::parse(shown.output);
  ASSERT_EQ(all["configuration_files"].size(), 1U) << shown.output;
  EXPECT_EQ(all["configuration_files"][0]["path"], "/etc/libshmem.conf");
}

TEST(Info, OfAJobCanBeJsonLines) {
  const auto job = run_pes(2, "off", {"barrier_pes", "10"},
                           {"SHMEM_INFO=json", "SHMEM_BARRIER_ALGORITHM=central_counter", "SHMEM_HOST_ID=\"\xff"});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  std::istringstream lines(job.output);
  std::map<std::string, Json> events;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, Not(HasSubstr("shmem:")));
    if (line.front() == '{') {
      const auto event = Json::parse(line);
      EXPECT_EQ(event["schema"], 1);
      events.emplace(event["event"], event);
    }
  }
  ASSERT_EQ(events.count("start") + events.count("barrier") + events.count("statistics"), 3U) << job.output;
  const auto& start = events["start"];
  EXPECT_EQ(start["pes"], 2);
  EXPECT_EQ(start["nodes"], 1);
  EXPECT_EQ(start["build"]["version"], SHMEM_VERSION);
  EXPECT_GT(start["variables"].size(), 10U);
  EXPECT_THAT(events["barrier"]["text"].get<std::string>(), HasSubstr("barrier central_counter"));
}

TEST(GlobalExit, EndsAllPesWithItsStatus) {
  const auto job = run_pes(3, "off", {"shmem_pes", "wrong", "global-exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST(GlobalExit, WithStatusZeroIsNoFailure) {
  const auto silent = run_clean(3, "off", {"shmem_pes", "wrong", "global-exit-0"});
  EXPECT_EQ(silent.output, "");
  const auto job = run_clean(3, "off", {"shmem_pes", "wrong", "global-exit-0"}, {"SHMEM_INFO=1"});
  EXPECT_THAT(job.output, HasSubstr("level 1: shmem: PE 1 called shmem_global_exit(0)"));
  for (const char* failure : {"level 3", "level 4", "oshrun:"}) {
    EXPECT_THAT(job.output, Not(HasSubstr(failure)));
  }
}

TEST(Wrappers, CompileAndLinkProgramsOfBothLanguages) {
  TempDir dir;
  const std::string text =
      "#include <shmem.h>\nint main(void) { shmem_init(); shmem_barrier_all(); shmem_finalize(); return 0; }\n";
  for (const auto& [wrapper, suffix] : {std::pair{"oshcc", ".c"}, std::pair{"oshc++", ".cpp"}}) {
    const std::string source = dir.file(std::string("hello") + suffix);
    const std::string binary = source + ".out";
    std::ofstream(source) << text;
    const auto compiled = run({program(wrapper), "-Wall", "-Werror", "-o", binary, source});
    ASSERT_TRUE(compiled.exit.clean()) << compiled.output;
    EXPECT_TRUE(run(oshrun(2, "off", {binary})).exit.clean());
  }
  // All headers, as old as a program's language may be.
  const std::string all = dir.file("all.cpp");
  ASSERT_TRUE(run({"bash", "-c", "echo '#include <aclshmem.h>' > " + all}).exit.clean());
  const auto old = run({program("oshc++"), "-std=c++11", "-Wall", "-Werror", "-fsyntax-only", all});
  EXPECT_TRUE(old.exit.clean()) << old.output;
  const auto shown = run({program("oshcc"), "--showme"});
  EXPECT_THAT(shown.output, HasSubstr("-lshmem"));
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/config_file.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/process.hpp"
#include "tests/support/wrong_files.hpp"

namespace {

using shmem::ConfigFile;
using shmem::ConfigValues;
using shmem::parse_config;
using testing::HasSubstr;

shmem::Environment environment_of(const std::map<std::string, std::string>& values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found != values.end() ? std::optional(found->second) : std::nullopt;
  };
}

std::vector<std::string> paths(const std::map<std::string, std::string>& values, bool more_rights = false) {
  std::vector<std::string> found;
  for (const ConfigFile& file : shmem::config_files(environment_of(values), more_rights)) {
    found.push_back(file.path);
  }
  return found;
}

TEST(ConfigFiles, AreTheAdministratorsAndTheUsers) {
  using Paths = std::vector<std::string>;
  const std::string system = "/etc/libshmem.conf";
  EXPECT_EQ(paths({}), Paths{system});
  EXPECT_EQ(paths({{"HOME", "/home/a"}}), (Paths{system, "/home/a/.config/libshmem.conf"}));
  EXPECT_EQ(paths({{"HOME", "/home/a"}, {"XDG_CONFIG_HOME", "/b"}}), (Paths{system, "/b/libshmem.conf"}));
  // The working folder is not the user's.
  EXPECT_EQ(paths({{"HOME", "/home/a"}, {"XDG_CONFIG_HOME", "b"}}), (Paths{system, "/home/a/.config/libshmem.conf"}));
  EXPECT_EQ(paths({{"HOME", ""}}), Paths{system});
  EXPECT_EQ(paths({{"HOME", "/home/a"}, {"SHMEM_CONFIG_FILE", "mine"}}), Paths{"mine"});
  EXPECT_EQ(paths({{"HOME", "/home/a"}, {"SHMEM_CONFIG_FILE", "none"}}), Paths{});
  EXPECT_EQ(paths({{"HOME", "/home/a"}, {"SHMEM_CONFIG_FILE", "mine"}}, true), Paths{system});
}

TEST(ConfigFiles, HaveALineForEachValue) {
  ConfigValues values{{"SHMEM_GBA", {"auto", "/etc/libshmem.conf:9"}},
                      {"SHMEM_NUMA", {"none", "/etc/libshmem.conf:1"}}};
  const auto read = parse_config("f",
                                 "# comment\n\n  \t\nSHMEM_GBA=off\n  SHMEM_TRACE \t= /a b#c # not this\r\n"
                                 "SHMEM_INFO =\nSHMEM_HOST_ID = a=b",
                                 values);
  ASSERT_TRUE(read) << read.error().text;
  const auto text = [&values](const char* name) { return values[name].value + "|" + values[name].source; };
  EXPECT_EQ(text("SHMEM_GBA"), "off|f:4");
  EXPECT_EQ(text("SHMEM_TRACE"), "/a b#c|f:5");
  EXPECT_EQ(text("SHMEM_INFO"), "|f:6");
  EXPECT_EQ(text("SHMEM_HOST_ID"), "a=b|f:7");
  EXPECT_EQ(text("SHMEM_NUMA"), "none|/etc/libshmem.conf:1");
  EXPECT_EQ(values.size(), 5U);
}

TEST(ConfigFiles, WrongLinesAreNamed) {
  const auto problem = [](const char* text) {
    ConfigValues values;
    const auto read = parse_config("dir/f", text, values);
    return read ? "" : read.error().text;
  };
  EXPECT_EQ(problem("\nSHMEM_GBA off\n"), "shmem: dir/f:2: \"SHMEM_GBA off\" is not NAME = VALUE");
  EXPECT_EQ(problem("= 3"), "shmem: dir/f:1: \"= 3\" is not NAME = VALUE");
  EXPECT_EQ(problem("export SHMEM_GBA=off"),
            "shmem: dir/f:1: export SHMEM_GBA is not a variable of libshmem (shmem_info lists them)");
  EXPECT_EQ(problem("SMA_INFO = 1"), "shmem: dir/f:1: SMA_INFO is the old name of SHMEM_INFO: use that here");
  EXPECT_EQ(problem("SHMEM_CONFIG_FILE = g"), "shmem: dir/f:1: SHMEM_CONFIG_FILE is read from the environment only");
  EXPECT_THAT(problem("GBA_DEVICE = x"), HasSubstr("those of libgba are read from the environment only"));
  EXPECT_EQ(problem("SHMEM_GBA = off\nSHMEM_GBA = auto"), "shmem: dir/f:2: SHMEM_GBA is already set in line 1");
}

TEST(ConfigFiles, AWrongValueIsNamedWithItsPlace) {
  ConfigValues values;
  ASSERT_TRUE(parse_config("f", "SHMEM_BARRIER_TIMEOUT = soon\n", values));
  const auto options = read_options(environment_of({}), values);
  ASSERT_FALSE(options);
  EXPECT_THAT(options.error().text, HasSubstr("shmem: f:1: SHMEM_BARRIER_TIMEOUT=soon is not a number of seconds"));
  EXPECT_TRUE(read_options(environment_of({{"SHMEM_BARRIER_TIMEOUT", "1"}}), values))
      << "the environment has precedence";
}

TEST(ConfigFiles, ThatCannotBeReadAreNamedWithTheReason) {
  const test_support::TempDir dir;
  for (const auto& wrong : test_support::make_wrong_files(dir.path())) {
    ConfigValues values;
    const auto read = read_config_file({wrong.path, true}, values);
    ASSERT_FALSE(read) << wrong.path;
    EXPECT_THAT(read.error().text,
                HasSubstr("shmem: cannot read the configuration file " + wrong.path + ": " + wrong.problem));
  }
}

TEST(ConfigFiles, ThatAllUsersMayWriteAreRefused) {
  const test_support::TempDir dir;
  const std::string path = dir.file("conf");
  std::ofstream(path) << "SHMEM_GBA = off\n";
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ConfigValues values;
  const auto read = read_config_file({path}, values);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().text, HasSubstr(path + ": every user may write it: chmod o-w"));
  ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
  EXPECT_TRUE(read_config_file({path}, values).value());
}

TEST(ProcessOptions, TakeTheSecretOfAJobOutOfTheEnvironment) {
  ::setenv("SHMEM_UID_SECRET", "of the user", 1);
  EXPECT_EQ(shmem::process_options().value().uid_secret, "of the user");
  ASSERT_NE(::getenv("SHMEM_UID_SECRET"), nullptr);
  ::setenv("SHMEM_UID_RANK", "1", 1);
  ::setenv("SHMEM_UID_SECRET", "of the job", 1);
  const char* const before = ::getenv("SHMEM_UID_SECRET");
  EXPECT_EQ(shmem::process_options().value().uid_secret, "of the job");
  EXPECT_EQ(::getenv("SHMEM_UID_SECRET"), nullptr);
  EXPECT_STREQ(before, "xxxxxxxxxx");
  EXPECT_EQ(shmem::process_options().value().uid_secret, "of the job") << "the library may start again";
  ::unsetenv("SHMEM_UID_RANK");
  ::setenv("SHMEM_UID_SECRET", "of the next job", 1);
  EXPECT_EQ(shmem::process_options().value().uid_secret, "of the next job");
  ::unsetenv("SHMEM_UID_SECRET");
}

TEST(ConfigFiles, NeedNotExistUnlessTheUserNamesThem) {
  ConfigValues values;
  EXPECT_FALSE(read_config_file({"/dev/null/.config/libshmem.conf"}, values).value());
  EXPECT_FALSE(read_config_file({"/no/such/file"}, values).value());
  EXPECT_FALSE(read_config_file({"/no/such/file", true}, values));
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// A fixture for the scripts that fill the cache of the tests labelled vm, with a fake apt that downloads nothing.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/stand_ins.hpp"
#include "tests/support/process.hpp"

class VmCache : public testing::Test {
 protected:
  VmCache() { programs_.add("dpkg", "echo amd64"); }

  /// Installs an apt that knows a mirror, logs its arguments, and then runs `body`.
  void apt_that(const std::string& body) {
    const std::string start = "echo \"${0##*/} $*\" >> " + calls_path() + R"sh(
      work="${2%/apt/apt.conf}"
      if [[ $* == indextargets* ]]; then echo "stable main http://mirror.invalid/debian/"; exit; fi
    )sh";
    programs_.add("apt-get", start + body);
    programs_.add("apt-cache", start + body);
  }

  test_support::Outcome run(const std::string& script, const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> command{"/bin/bash", GBA_SOURCE_DIR "/scripts/" + script};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test_support::run(command, {"PATH=" + programs_.path() + ":/usr/bin:/bin", "GBA_VM_CACHE=" + cache()});
  }

  std::string calls() {
    std::ostringstream text;
    text << std::ifstream(calls_path()).rdbuf();
    return text.str();
  }

  [[nodiscard]] std::vector<std::string> cached() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cache())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  [[nodiscard]] std::string cache() const { return dir_.file("cache"); }
  [[nodiscard]] std::string calls_path() const { return dir_.file("calls"); }

  StandIns programs_;

 private:
  test_support::TempDir dir_;
};

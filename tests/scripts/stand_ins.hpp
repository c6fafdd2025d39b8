// SPDX-License-Identifier: Apache-2.0
// Fakes for the programs that the scripts call, and a tree in which the scripts run.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

/// A temporary folder of programs, to be put first in PATH. It is removed with the object.
class StandIns {
 public:
  /// Adds a bash program `name` that runs `body`.
  void add(const std::string& name, const std::string& body) { write(dir_.file(name), body); }
  [[nodiscard]] const std::string& path() const { return dir_.path(); }

  static void write(const std::string& path, const std::string& body) {
    std::ofstream(path) << "#!/bin/bash\n" << body << '\n';
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

 private:
  test_support::TempDir dir_;
};

/// A tree with only the real scripts, on an x86-64 whatever machine this is. They find all packages installed, a cmake
/// that does nothing, and libFuzzer.
class ScriptTree {
 public:
  ScriptTree() {
    std::filesystem::copy(GBA_SOURCE_DIR "/scripts", file("scripts"));
    std::filesystem::create_directories(file("build/bin"));
    std::filesystem::create_directories(file("build-soak"));
    programs_.add("dpkg-query", R"(for a in "${@:3}"; do echo "$a installed"; done)");
    programs_.add("cmake", "true");
    programs_.add("uname", "echo x86_64");
    programs_.add("clang++", "echo " + file("clang"));
    std::filesystem::create_directories(file("clang/lib/linux"));
    std::ofstream(fuzzer_library()) << "";
  }

  /// libFuzzer, without which no fuzz targets can be built.
  [[nodiscard]] std::string fuzzer_library() const { return file("clang/lib/linux/libclang_rt.fuzzer-x86_64.a"); }

  [[nodiscard]] std::string file(const std::string& name) const { return dir_.file(name); }
  StandIns& programs() { return programs_; }

  test_support::Outcome run(const std::string& script, std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), file("scripts/" + script));
    return test_support::run(arguments, environment(), test_support::Seconds{120});
  }

  /// The environment of the scripts, for a test that starts one itself. This may be a full run, or a soak.
  [[nodiscard]] std::vector<std::string> environment() const {
    return {"PATH=" + programs_.path() + ":/usr/bin:/bin", "GBA_PROVE=", "GBA_SOAK="};
  }

 private:
  test_support::TempDir dir_;
  StandIns programs_;
};

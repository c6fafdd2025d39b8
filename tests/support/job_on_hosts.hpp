// SPDX-License-Identifier: Apache-2.0
// Jobs whose PEs run on the hosts of a test and find each other over TCP.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/hosts.hpp"
#include "tests/support/process.hpp"

namespace test_support {

class JobOnHosts {
 public:
  using Environment = std::vector<std::string>;
  static constexpr Seconds kTimeLimit{30};

  /// `host_of`: the host of each PE; PE 0, to which the others connect, is on h0. `all`: the environment of all PEs;
  /// `own`: of one PE each.
  JobOnHosts(const Hosts& hosts, const std::vector<int>& host_of, const std::vector<std::string>& command,
             const Environment& all = {}, const std::vector<Environment>& own = {}) {
    for (std::size_t pe = 0; pe < host_of.size(); ++pe) {
      Environment environment{"SHMEM_BOOTSTRAP=uid",
                              "SHMEM_UID_SESSION_ID=" + Hosts::ipv4(0) + ":7000",
                              "SHMEM_UID_RANK=" + std::to_string(pe),
                              "SHMEM_UID_SIZE=" + std::to_string(host_of.size()),
                              "SHMEM_GBA=off",
                              "SHMEM_SYMMETRIC_SIZE=64M",
                              "SHMEM_BOOTSTRAP_TIMEOUT=20"};
      environment.insert(environment.end(), all.begin(), all.end());
      if (pe < own.size()) {
        environment.insert(environment.end(), own[pe].begin(), own[pe].end());
      }
      pes_.push_back(std::make_unique<Process>(hosts.on(host_of[pe], command), environment));
    }
  }

  [[nodiscard]] Process& pe(std::size_t pe) const { return *pes_[pe]; }
  [[nodiscard]] std::size_t size() const { return pes_.size(); }

  /// True as soon as every PE has printed `text`.
  [[nodiscard]] bool all_say(const std::string& text, Seconds limit = kTimeLimit) const {
    for (const auto& pe : pes_) {
      if (!pe->wait_for_output(text, limit)) {
        return false;
      }
    }
    return true;
  }

  /// The exit code of each PE: a signal as its negative number, 1000 if it still runs after `limit`, which counts for
  /// all together.
  [[nodiscard]] std::vector<int> codes(Seconds limit = kTimeLimit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    std::vector<int> codes;
    for (const auto& pe : pes_) {
      const auto exit = pe->wait(std::max(Seconds{0.01}, Seconds(end - std::chrono::steady_clock::now())));
      codes.push_back(!exit ? 1000 : (exit->signal != 0 ? -exit->signal : exit->code));
    }
    return codes;
  }
  [[nodiscard]] std::string output() const {
    std::string text;
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
      text += "-- PE " + std::to_string(pe) + ":\n" + pes_[pe]->output();
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Process>> pes_;
};

}  // namespace test_support

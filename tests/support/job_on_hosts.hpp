// SPDX-License-Identifier: Apache-2.0
// Jobs whose PEs run on the hosts of a test and find each other over TCP.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/hosts.hpp"
#include "tests/support/process.hpp"

namespace test_support {

class JobOnHosts {
 public:
  using Environment = std::vector<std::string>;
  static constexpr Seconds kTimeLimit{120};

  /// `host_of`: the host of each PE; PE 0, to which the others connect, is on h0. `all`: the environment of all PEs;
  /// `own`: of one PE each.
  JobOnHosts(const Hosts& hosts, const std::vector<int>& host_of, const std::vector<std::string>& command,
             const Environment& all = {}, const std::vector<Environment>& own = {});
  ~JobOnHosts();

  [[nodiscard]] Process& pe(std::size_t pe) const { return *pes_[pe]; }
  [[nodiscard]] std::size_t size() const { return pes_.size(); }

  /// True as soon as every PE has printed `text`.
  [[nodiscard]] bool all_say(const std::string& text, Seconds limit = kTimeLimit) const;

  /// The exit code of each PE: a signal as its negative number, 1000 if it still runs after `limit`, which counts for
  /// all together.
  [[nodiscard]] std::vector<int> codes(Seconds limit = kTimeLimit) const;
  [[nodiscard]] std::string output() const;

 private:
  std::vector<std::unique_ptr<Process>> pes_;
};

}  // namespace test_support

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job_on_hosts.hpp"

#include <algorithm>
#include <chrono>

namespace test_support {

JobOnHosts::JobOnHosts(const Hosts& hosts, const std::vector<int>& host_of, const std::vector<std::string>& command,
                       const Environment& all, const std::vector<Environment>& own) {
  for (std::size_t pe = 0; pe < host_of.size(); ++pe) {
    Environment environment{"SHMEM_BOOTSTRAP=uid",
                            "SHMEM_UID_SESSION_ID=" + Hosts::ipv4(0) + ":7000",
                            "SHMEM_UID_RANK=" + std::to_string(pe),
                            "SHMEM_UID_SIZE=" + std::to_string(host_of.size()),
                            "SHMEM_GBA=off",
                            "SHMEM_SYMMETRIC_SIZE=64M",
                            "SHMEM_BOOTSTRAP_TIMEOUT=100"};
    environment.insert(environment.end(), all.begin(), all.end());
    if (pe < own.size()) {
      environment.insert(environment.end(), own[pe].begin(), own[pe].end());
    }
    pes_.push_back(std::make_unique<Process>(hosts.on(host_of[pe], command), environment));
  }
}

JobOnHosts::~JobOnHosts() = default;

bool JobOnHosts::all_say(const std::string& text, Seconds limit) const {
  return std::all_of(pes_.begin(), pes_.end(), [&](const auto& pe) { return pe->wait_for_output(text, limit); });
}

std::vector<int> JobOnHosts::codes(Seconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::vector<int> codes;
  for (const auto& pe : pes_) {
    const auto exit = pe->wait(std::max(Seconds{0.01}, Seconds(end - std::chrono::steady_clock::now())));
    codes.push_back(!exit ? 1000 : (exit->signal != 0 ? -exit->signal : exit->code));
  }
  return codes;
}

std::string JobOnHosts::output() const {
  std::string text;
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) {
    text += "-- PE " + std::to_string(pe) + ":\n" + pes_[pe]->output();
  }
  return text;
}

}  // namespace test_support

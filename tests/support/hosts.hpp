// SPDX-License-Identifier: Apache-2.0
// A network of a test's own: hosts, which are namespaces of this machine, joined by a switch.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace test_support {

/// What has gone over a host's link.
struct Traffic {
  std::uint64_t sent = 0;  // frames
  std::uint64_t received = 0;
};

/// What a cable does to frames, each way. By a process (slow_link.cpp), since not all kernels have netem.
struct Cable {
  std::chrono::microseconds delay{0};
  double loss = 0;                        // of all frames, 0 to 1
  std::uint64_t kilobits_per_second = 0;  // 0: no limit
  unsigned seed = 1;                      // of what is lost
};

/// Hosts h0, h1, ..., each with a network, a host name, System V IPC, mounts and a /dev/shm of its own, and a cable
/// (veth) from its eth0 to a switch (bridge) that stands in a namespace of its own, too: nothing of this machine's
/// network is touched, and many of these may be there at once. Files, processes and processors are this machine's.
///
/// Programs on a host find SHMEM_HOST_ID in their environment, which no other host has. Hosts know each other by name,
/// and mpirun starts its daemons on them: on h0, `mpirun --host h0:2,h1:2 PROGRAM`.
///
/// All that runs on the hosts is killed with the object, or once the test has ended, however it has, and nothing of the
/// hosts is left then. Used by one thread, which must outlive it. Needs root.
class Hosts {
 public:
  /// Why there can be none here, or nothing.
  static std::optional<std::string> missing();

  /// Throws std::runtime_error if they cannot be made. REQUIRES: number <= 200.
  explicit Hosts(int number);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] static std::string name(int host) { return "h" + std::to_string(host); }
  /// Of its eth0. An IPv6 address is there only if the kernel has that.
  [[nodiscard]] static std::string ipv4(int host);
  [[nodiscard]] static std::string ipv6(int host);
  [[nodiscard]] static bool has_ipv6();
  [[nodiscard]] std::string id(int host) const;
  /// "h0:2,h1:2", for mpirun's --host: that many processes on each.
  [[nodiscard]] std::string slots(int each) const;

  /// In place of ssh: a program that runs a command on a host, AGENT [OPTION...] HOST COMMAND...
  [[nodiscard]] std::string agent() const { return dir_.file("agent"); }

  /// The command line that runs `command` there.
  [[nodiscard]] std::vector<std::string> on(int host, const std::vector<std::string>& command) const;
  /// A program on the host, in this process's working folder.
  [[nodiscard]] Process start(int host, const std::vector<std::string>& command,
                              const std::vector<std::string>& environment = {}) const;
  /// The same, to its end, as test_support::run.
  [[nodiscard]] Outcome run(int host, const std::vector<std::string>& command,
                            const std::vector<std::string>& environment = {}, Seconds limit = Seconds{30}) const;

  /// Plugs another cable in, and so the host is off the network for a moment; its MTU is 1500 again. With it, the host
  /// does not notice that its link is down. Throws std::runtime_error where there is no /dev/net/tun.
  void use_cable(int host, const Cable& cable);
  /// As if the cable were pulled out of the switch: eth0 stays up but has no carrier.
  void link_down(int host) const;
  void link_up(int host) const;
  /// `mtu` for eth0; `switch_mtu` (0: the same) for the other end, which drops without a word what is longer.
  void set_mtu(int host, int mtu, int switch_mtu = 0) const;
  [[nodiscard]] Traffic traffic(int host) const;

 private:
  struct Close {
    void operator()(std::FILE* pipe) const;
  };

  void write_scripts() const;
  void start_keeper();
  void connect() const;
  void plug_in(int host) const;
  /// `commands` of ip, a line each.
  void ip(const Process& holder, const std::string& commands) const;
  [[nodiscard]] std::string files(const std::string& name) const { return dir_.file(name); }

  const int number_;
  TempDir dir_;
  std::unique_ptr<Process> switch_;                 // keeps its namespace
  std::vector<std::unique_ptr<Process>> holders_;   // the same for each host
  std::map<int, std::unique_ptr<Process>> cables_;  // those that are processes
  std::unique_ptr<std::FILE, Close> keeper_;
};

}  // namespace test_support

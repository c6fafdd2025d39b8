// SPDX-License-Identifier: Apache-2.0
// A private network for a test: hosts, which are namespaces of this machine, joined by a switch.
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

/// The traffic of a host's link.
struct Traffic {
  std::uint64_t sent = 0;  // frames
  std::uint64_t received = 0;
};

/// The effect of a cable on frames, in each direction. By a process (slow_link.cpp): not all kernels have netem.
struct Cable {
  std::chrono::microseconds delay{0};
  double loss = 0;                        // share of frames that are lost, 0 to 1
  std::uint64_t kilobits_per_second = 0;  // 0: no limit
  unsigned seed = 1;                      // decides which frames are lost
};

/// Hosts h0, h1, ..., each with a network, a host name, System V IPC, mounts and a /dev/shm of its own, and a cable
/// (veth) from its eth0 to a switch (bridge). The switch is in a namespace of its own, too, so this machine's network
/// is not changed, and many of these objects can exist at once. Files, processes and processors are this machine's.
///
/// Programs on a host have a SHMEM_HOST_ID of that host in their environment. Hosts know each other by name, and mpirun
/// can start its daemons on them: on h0, `mpirun --host h0:2,h1:2 PROGRAM`.
///
/// All processes on the hosts are killed when the object is destroyed or the test has ended in any way, and nothing of
/// the hosts is left behind. Used by one thread, which must outlive it. Needs root.
class Hosts {
 public:
  /// The reason why hosts cannot be made on this machine, or nothing.
  static std::optional<std::string> missing();

  /// Throws std::runtime_error if they cannot be made. REQUIRES: number <= 200.
  explicit Hosts(int number);
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] static std::string name(int host) { return "h" + std::to_string(host); }
  /// The addresses of its eth0. It has an IPv6 address only if the kernel supports IPv6.
  [[nodiscard]] static std::string ipv4(int host);
  [[nodiscard]] static std::string ipv6(int host);
  [[nodiscard]] static bool has_ipv6();
  [[nodiscard]] std::string id(int host) const;
  /// The argument of mpirun's --host for `each` processes on each host, such as "h0:2,h1:2".
  [[nodiscard]] std::string slots(int each) const;

  /// A replacement for ssh: a program that runs a command on a host, AGENT [OPTION...] HOST COMMAND...
  [[nodiscard]] std::string agent() const { return dir_.file("agent"); }

  /// The command line that runs `command` on the host.
  [[nodiscard]] std::vector<std::string> on(int host, const std::vector<std::string>& command) const;
  /// Starts a program on the host, in the working folder of this process.
  [[nodiscard]] Process start(int host, const std::vector<std::string>& command,
                              const std::vector<std::string>& environment = {}) const;
  /// Runs a program on the host to its end, as test_support::run.
  [[nodiscard]] Outcome run(int host, const std::vector<std::string>& command,
                            const std::vector<std::string>& environment = {}, Seconds limit = Seconds{120}) const;

  /// Replaces the cable. The host is off the network for a moment, and its MTU is 1500 again. With such a cable the
  /// host does not notice that its link is down. Throws std::runtime_error if there is no /dev/net/tun.
  void use_cable(int host, const Cable& cable);
  /// Acts as if the cable were pulled out of the switch: eth0 stays up but has no carrier.
  void link_down(int host) const;
  void link_up(int host) const;
  /// Sets `mtu` for eth0, and `switch_mtu` (0: the same) for the other end, which silently drops longer frames.
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
  /// Runs commands of ip, one per line.
  void ip(const Process& holder, const std::string& commands) const;
  [[nodiscard]] std::string files(const std::string& name) const { return dir_.file(name); }

  const int number_;
  TempDir dir_;
  std::unique_ptr<Process> switch_;                 // a process that keeps its namespace
  std::vector<std::unique_ptr<Process>> holders_;   // the same for each host
  std::map<int, std::unique_ptr<Process>> cables_;  // the cables that use_cable() has started
  std::unique_ptr<std::FILE, Close> keeper_;
};

}  // namespace test_support

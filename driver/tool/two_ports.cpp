// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/two_ports.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "driver/tool/rendezvous.hpp"

namespace tool {

void take_two_ports(CLI::App& command, TwoPorts& ports) {
  auto* const peer =
      command.add_option("--peer", ports.peer, "the second port: another device of this machine")->type_name("DEVICE");
  auto* const listen =
      command
          .add_option("--listen", ports.listen,
                      fmt::format("be the second port, for a gba on another host that connects (default port {})",
                                  kDefaultPort))
          ->type_name("[ADDRESS:PORT]")
          ->expected(0, 1);
  auto* const connect = command.add_option("--connect", ports.connect, "the second port: a gba that listens there")
                            ->type_name("HOST[:PORT]");
  command.add_option("--timeout", ports.timeout, "how many seconds to wait for the other side")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  listen->excludes(connect)->excludes(peer);
  connect->excludes(peer);
  command.parse_complete_callback([&ports, listen] { ports.listens = listen->count() > 0; });
}

Result<Link> meet(const TwoPorts& ports) {
  const auto address =
      ports.listens ? parse_address(ports.listen, "--listen") : parse_address(ports.connect, "--connect");
  if (!address) {
    return address.error();
  }
  return ports.listens ? accept_one(*address, ports.limit()) : connect_to(*address, ports.limit());
}

Result<std::unique_ptr<PeerProcess>> PeerProcess::start(const std::function<void(Link&)>& serve) {
  auto links = Link::make_pair();
  if (!links) {
    return links.error();
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Failure{-errno, fmt::format("gba: cannot start a second process: {}", std::strerror(errno)), kOther};
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    { const Link closed = std::move(links->first); }
    if (::getppid() == parent) {
      serve(links->second);
    }
    ::_exit(0);
  }
  return std::unique_ptr<PeerProcess>(new PeerProcess(pid, std::move(links->first)));
}

PeerProcess::~PeerProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace tool

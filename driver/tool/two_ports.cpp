// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/two_ports.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "driver/tool/rendezvous.hpp"

namespace tool {

void take_two_ports(Command& command, TwoPorts& ports) {
  command.text("--peer", ports.peer, "the second port: another device of this machine", "DEVICE");
  command.optional_text(
      "--listen", ports.listen, ports.listens,
      fmt::format("be the second port, for a gba on another host that connects (default port {})", kDefaultPort),
      "[ADDRESS:PORT]");
  command.text("--connect", ports.connect, "the second port: a gba that listens there", "HOST[:PORT]");
  command.number("--timeout", ports.timeout, 0.1, 86400, "how many seconds to wait for the other side");
  command.exclude_each_other({"--listen", "--connect", "--peer"});
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

// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hosts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace test_support {
namespace {

constexpr Seconds kTimeLimit{120};

/// The command that creates the namespaces of a host and runs a script in them.
const std::vector<std::string> kHost{"unshare", "--net", "--uts", "--ipc", "--mount", "sh", "-ec"};

std::string hexadecimal(int number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

std::string address(int host) {
  return "10.77.0." + std::to_string(host + 1);
}

/// The bridge's port for a host.
std::string port(int host) {
  return "v" + std::to_string(host);
}

void write_program(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << "#!/bin/sh\n" << text;
  file.close();
  if (!file || ::chmod(path.c_str(), 0700) != 0) {
    throw std::runtime_error("cannot write " + path);
  }
}

std::string network_of(const Process& holder) {
  struct stat status {};
  const std::string path = "/proc/" + std::to_string(holder.pid()) + "/ns/net";
  if (::stat(path.c_str(), &status) != 0) {
    throw std::runtime_error("cannot look at " + path + ", which should be a host's: " + holder.output());
  }
  return std::to_string(status.st_ino);
}

std::unique_ptr<Process> hold(const std::vector<std::string>& command) {
  auto holder = std::make_unique<Process>(command);
  if (!holder->wait_for_output("ready\n", kTimeLimit)) {
    throw std::runtime_error("cannot make a host or a cable: " + holder->output());
  }
  return holder;
}

/// Kills all processes in the networks with these numbers as soon as it reads a line, or when the writer has ended.
constexpr const char* kKeeper = R"(folder=$1
shift
for network; do set -- "$@" -o -lname "net:\[$network\]"; shift; done
read -r _
for _ in $(seq 200); do
  found=$(find /proc/[0-9]*/ns/net -false "$@" 2>/dev/null | cut -d / -f 3)
  [ -n "$found" ] || break
  kill -KILL $found 2>/dev/null
  sleep 0.02
done
rm -rf "$folder"
)";

constexpr const char* kAgent = R"(while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec "${0%/*}/$host" sh -c "$*"
)";

}  // namespace

std::optional<std::string> Hosts::missing() {
  if (::geteuid() != 0) {
    return "only root can make network namespaces";
  }
  if (test_support::run({"ip", "-Version"}).exit.code == 127) {
    return "there is no ip (Debian: iproute2)";
  }
  auto command = kHost;
  command.push_back(
      "mount -t tmpfs tmpfs /dev/shm; ip link add br0 type bridge; ip link add v0 type veth peer name eth0");
  const auto outcome = test_support::run(command);
  if (!outcome.exit.clean()) {
    return "no namespaces, bridges or veth pairs here: " + outcome.output;
  }
  return std::nullopt;
}

std::string Hosts::ipv4(int host) {
  return address(host);
}

std::string Hosts::ipv6(int host) {
  return "fd77::" + hexadecimal(host + 1);
}

bool Hosts::has_ipv6() {
  return ::access("/proc/sys/net/ipv6", F_OK) == 0;
}

std::string Hosts::id(int host) const {
  return std::filesystem::path(dir_.path()).filename().string() + "." + name(host);
}

std::string Hosts::slots(int each) const {
  std::string text;
  for (int host = 0; host < number_; ++host) {
    text += (host == 0 ? "" : ",") + name(host) + ":" + std::to_string(each);
  }
  return text;
}

Hosts::Hosts(int number) : number_(number) {
  std::ofstream names(files("hosts"));
  names << "127.0.0.1 localhost\n";
  for (int host = 0; host < number_; ++host) {
    names << ipv4(host) << ' ' << name(host) << '\n';
    if (has_ipv6()) {
      names << ipv6(host) << ' ' << name(host) << '\n';
    }
  }
  names.close();
  switch_ = hold({"unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"});
  for (int host = 0; host < number_; ++host) {
    auto command = kHost;
    // Turns duplicate address detection off, so that an IPv6 address can be used at once.
    command.push_back("hostname " + name(host) + "; mount -t tmpfs tmpfs /dev/shm; mount --bind " + files("hosts") +
                      " /etc/hosts; none=/proc/sys/net/ipv6/conf/default/accept_dad; [ ! -e $none ] || echo 0 >$none; "
                      "echo ready; exec sleep infinity");
    holders_.push_back(hold(command));
  }
  write_scripts();
  start_keeper();
  connect();
}

Hosts::~Hosts() {
  std::fputc('\n', keeper_.get());
  keeper_.reset();
  const auto end = std::chrono::steady_clock::now() + kTimeLimit;
  while (std::filesystem::exists(dir_.path()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Hosts::Close::operator()(std::FILE* pipe) const {
  ::pclose(pipe);
}

void Hosts::write_scripts() const {
  for (int host = 0; host < number_; ++host) {
    const pid_t holder = holders_[static_cast<std::size_t>(host)]->pid();
    write_program(files(name(host)), "exec nsenter --target " + std::to_string(holder) +
                                         " --net --uts --ipc --mount --wd=\"$PWD\" env SHMEM_HOST_ID=" + id(host) +
                                         " OMPI_MCA_plm_rsh_agent=" + agent() + " PRTE_MCA_plm_ssh_agent=" + agent() +
                                         " \"$@\"\n");
  }
  write_program(agent(), kAgent);
  write_program(files("keeper"), kKeeper);
}

/// The keeper is not a child of the test, so that it survives if the test is killed with all its children.
void Hosts::start_keeper() {
  std::string command = "exec setsid --fork " + files("keeper") + " " + dir_.path() + " " + network_of(*switch_);
  for (const auto& holder : holders_) {
    command += " " + network_of(*holder);
  }
  command += " >/dev/null 2>&1";
  keeper_.reset(::popen(command.c_str(), "we"));
  if (keeper_ == nullptr) {
    throw std::runtime_error("cannot start " + command);
  }
}

void Hosts::connect() const {
  std::string cables = "link add br0 type bridge mcast_snooping 0\nlink set br0 up\n";
  for (int host = 0; host < number_; ++host) {
    const auto& holder = *holders_[static_cast<std::size_t>(host)];
    cables += "link add " + port(host) + " type veth peer name eth0 netns " + std::to_string(holder.pid()) + "\n";
  }
  ip(*switch_, cables);
  for (int host = 0; host < number_; ++host) {
    plug_in(host);
  }
}

void Hosts::plug_in(int host) const {
  ip(*switch_, "link set " + port(host) + " master br0 up\n");
  std::string addresses = "link set lo up\naddress add " + ipv4(host) + "/24 dev eth0\n";
  if (has_ipv6()) {
    addresses += "address add " + ipv6(host) + "/64 dev eth0 nodad\n";
  }
  ip(*holders_[static_cast<std::size_t>(host)], addresses + "link set eth0 up\n");
}

void Hosts::use_cable(int host, const Cable& cable) {
  if (cables_.erase(host) == 0) {
    ip(*switch_, "link delete " + port(host) + "\n");
  }
  const auto holder = std::to_string(holders_[static_cast<std::size_t>(host)]->pid());
  cables_[host] = hold({test_program("slow_link"), std::to_string(switch_->pid()), port(host), holder, "eth0",
                        std::to_string(cable.delay.count()), std::to_string(std::lround(cable.loss * 1e6)),
                        std::to_string(cable.kilobits_per_second), std::to_string(cable.seed)});
  plug_in(host);
}

void Hosts::ip(const Process& holder, const std::string& commands) const {
  std::ofstream(files("batch")) << commands;
  const auto outcome =
      test_support::run({"nsenter", "--target", std::to_string(holder.pid()), "--net", "ip", "-batch", files("batch")});
  if (!outcome.exit.clean()) {
    throw std::runtime_error("ip: " + outcome.output + "in:\n" + commands);
  }
}

std::vector<std::string> Hosts::on(int host, const std::vector<std::string>& command) const {
  std::vector<std::string> line{files(name(host))};
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

Process Hosts::start(int host, const std::vector<std::string>& command,
                     const std::vector<std::string>& environment) const {
  return Process(on(host, command), environment);
}

Outcome Hosts::run(int host, const std::vector<std::string>& command, const std::vector<std::string>& environment,
                   Seconds limit) const {
  return test_support::run(on(host, command), environment, limit);
}

void Hosts::link_down(int host) const {
  ip(*switch_, "link set " + port(host) + " down\n");
}

void Hosts::link_up(int host) const {
  ip(*switch_, "link set " + port(host) + " up\n");
}

void Hosts::set_mtu(int host, int mtu, int switch_mtu) const {
  // Otherwise the kernel passes TCP's segments on as one large packet, which an MTU does not stop.
  const char* apart = switch_mtu == 0 ? "" : " gso_max_segs 1";
  ip(*holders_[static_cast<std::size_t>(host)], "link set eth0 mtu " + std::to_string(mtu) + apart + "\n");
  ip(*switch_, "link set " + port(host) + " mtu " + std::to_string(switch_mtu == 0 ? mtu : switch_mtu) + "\n");
}

Traffic Hosts::traffic(int host) const {
  std::ifstream counters("/proc/" + std::to_string(switch_->pid()) + "/net/dev");
  for (std::string line; std::getline(counters, line);) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t value[10]{};
    fields >> name;
    for (auto& field : value) {
      fields >> field;
    }
    if (fields && name == port(host) + ":") {
      return {value[1], value[9]};
    }
  }
  throw std::runtime_error("the kernel has no counters of " + port(host));
}

}  // namespace test_support

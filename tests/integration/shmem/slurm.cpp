// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/shmem/slurm.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <random>
#include <utility>

#include "tests/support/network.hpp"

namespace test_support {

namespace {

constexpr Seconds kUp{60};
constexpr Seconds kDown{20};

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return whole.substr(0, whole.find('.'));
}

void write_key(const std::string& path) {
  std::random_device random;
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 1024; ++i) {
    file.put(static_cast<char>(random()));
  }
  file.close();
  ::chmod(path.c_str(), 0400);
}

}  // namespace

std::optional<std::string> Slurm::missing() {
  if (::geteuid() != 0) {
    return "only root can start slurmd";
  }
  for (const char* name : {"munged", "slurmctld", "slurmd", "srun", "sinfo", "scancel"}) {
    if (run({name, "--version"}).exit.code == 127) {
      return std::string("not installed: ") + name +
             " (Debian: slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins, munge)";
    }
  }
  return std::nullopt;
}

void Slurm::configure() const {
  const std::string& folder = dir_.path();
  const auto all = nodes();
  write_key(dir_.file("munge.key"));
  std::ofstream file(dir_.file("slurm.conf"));
  for (const std::string& line : {
           std::string("ClusterName=test"),
           "SlurmctldHost=" + all.front().first + "(" + all.front().second + ")",
           "SlurmctldPort=" + std::to_string(free_loopback_port()),
           "SlurmdPort=" + std::to_string(free_loopback_port()),
           std::string("SlurmUser=root"),
           std::string("SlurmdUser=root"),
           std::string("AuthType=auth/munge"),
           "AuthInfo=socket=" + folder + "/munge.sock",
           std::string("CredType=cred/munge"),
           "StateSaveLocation=" + folder + "/state",
           "TmpFS=" + folder + "/tmp.%n",
           "SlurmdSpoolDir=" + folder + "/spool.%n",
           "SlurmctldPidFile=" + folder + "/slurmctld.pid",
           "SlurmdPidFile=" + folder + "/slurmd.%n.pid",
           std::string("ProctrackType=proctrack/linuxproc"),
           std::string("TaskPlugin=task/none"),
           std::string("SelectType=select/cons_tres"),
           std::string("SelectTypeParameters=CR_CPU"),
           std::string("AccountingStorageType=accounting_storage/none"),
           std::string("JobAcctGatherType=jobacct_gather/none"),
           std::string("ReturnToService=2"),
           std::string("SlurmdParameters=config_overrides"),  // the machine may have fewer than 16 processors
           std::string("PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE"),
       }) {
    file << line << '\n';
  }
  if (hosts_ != nullptr) {
    // A task has srun's environment, not that of its host.
    std::ofstream(dir_.file("prolog")) << "#!/bin/sh\necho export SHMEM_HOST_ID=$(sed -n \"s/^$(hostname) //p\" "
                                       << dir_.file("ids") << ")\n";
    ::chmod(dir_.file("prolog").c_str(), 0700);
    std::ofstream ids(dir_.file("ids"));
    for (int host = 0; host < hosts_->number(); ++host) {
      ids << Hosts::name(host) << ' ' << hosts_->id(host) << '\n';
    }
    file << "TaskProlog=" << dir_.file("prolog") << '\n';
  } else if (!task_prolog_.empty()) {
    file << "TaskProlog=" << task_prolog_ << '\n';
  }
  for (const auto& [name, address] : all) {
    file << "NodeName=" << name << " NodeAddr=" << address << " CPUs=16 State=UNKNOWN\n";
  }
}

std::vector<std::pair<std::string, std::string>> Slurm::nodes() const {
  if (hosts_ == nullptr) {
    return {{host_name(), "127.0.0.1"}};
  }
  std::vector<std::pair<std::string, std::string>> all;
  all.reserve(static_cast<std::size_t>(hosts_->number()));
  for (int host = 0; host < hosts_->number(); ++host) {
    all.emplace_back(Hosts::name(host), Hosts::ipv4(host));
  }
  return all;
}

std::unique_ptr<Process> Slurm::on_node(int node, const std::vector<std::string>& command,
                                        std::vector<std::string> environment) const {
  environment.push_back(variable());
  return std::make_unique<Process>(hosts_ == nullptr ? command : hosts_->on(node, command), environment);
}

Slurm::Slurm(const Hosts* hosts, std::string task_prolog) : hosts_(hosts), task_prolog_(std::move(task_prolog)) {
  ::mkdir(dir_.file("state").c_str(), 0700);
  configure();
  daemons_.push_back(on_node(0, {"munged", "--foreground", "--force", "--key-file=" + dir_.file("munge.key"),
                                 "--socket=" + dir_.file("munge.sock"), "--pid-file=" + dir_.file("munged.pid"),
                                 "--log-file=" + dir_.file("munged.log"), "--seed-file=" + dir_.file("munged.seed")}));
  const auto end = std::chrono::steady_clock::now() + kUp;
  while (::access(dir_.file("munge.sock").c_str(), F_OK) != 0 && std::chrono::steady_clock::now() < end) {
    ::usleep(50'000);
  }
  daemons_.push_back(on_node(0, {"slurmctld", "-D", "-c", "-f", dir_.file("slurm.conf")}));
  int node = 0;
  for (const auto& [name, address] : nodes()) {
    for (const char* own : {"spool.", "tmp."}) {
      ::mkdir(dir_.file(own + name).c_str(), 0700);
    }
    daemons_.push_back(on_node(node++, {"slurmd", "-D", "-N", name, "-f", dir_.file("slurm.conf")}));
  }
  while (!ready_ && std::chrono::steady_clock::now() < end) {
    const auto state = on_node(0, {"sinfo", "-h", "-o", "%T %D"});
    ready_ = state->wait(kUp) && state->output() == "idle " + std::to_string(node) + "\n";
    ::usleep(200'000);
  }
}

Slurm::~Slurm() {
  on_node(0, {"scancel", "--full", "--signal=KILL", "--user=root"})->wait(kDown);
  // Daemons that end normally end their jobs, and with them all processes that they started.
  for (auto daemon = daemons_.rbegin(); daemon != daemons_.rend(); ++daemon) {
    (*daemon)->signal(SIGTERM);
    (*daemon)->wait(kDown);
  }
}

std::string Slurm::log() const {
  std::string text;
  for (const auto& daemon : daemons_) {
    text += daemon->output();
  }
  return text;
}

std::unique_ptr<Process> Slurm::srun(int tasks, const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment) const {
  std::vector<std::string> line{"srun", "--mpi=pmix", "-n", std::to_string(tasks)};
  if (const int hosts = static_cast<int>(nodes().size()); hosts > 1) {
    line.insert(line.end(), {"-N", std::to_string(hosts), "--ntasks-per-node=" + std::to_string(tasks / hosts)});
  }
  line.insert(line.end(), command.begin(), command.end());
  std::vector<std::string> all{"SHMEM_GBA=off"};
  all.insert(all.end(), environment.begin(), environment.end());
  return on_node(0, line, all);
}

}  // namespace test_support

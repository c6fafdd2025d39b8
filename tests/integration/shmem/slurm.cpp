// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/shmem/slurm.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <random>

#include "shmem/memory/fd.hpp"

namespace test_support {

namespace {

constexpr Seconds kUp{60};
constexpr Seconds kDown{20};

/// A port that nobody listens at now.
int free_port() {
  const shmem::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ::ntohs(address.sin_port);
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return whole.substr(0, whole.find('.'));
}

void write_key(const std::string& path) {
  std::random_device random;
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < 1024; ++i) file.put(static_cast<char>(random()));
  file.close();
  ::chmod(path.c_str(), 0400);
}

}  // namespace

std::optional<std::string> Slurm::missing() {
  if (::geteuid() != 0) return "only root can start slurmd";
  for (const char* name : {"munged", "slurmctld", "slurmd", "srun", "sinfo", "scancel"}) {
    if (run({name, "--version"}).exit.code == 127) {
      return std::string("there is no ") + name +
             " (Debian: slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins, munge)";
    }
  }
  return std::nullopt;
}

void Slurm::configure() const {
  const std::string& folder = dir_.path();
  const std::string host = host_name();
  write_key(dir_.file("munge.key"));
  std::ofstream file(dir_.file("slurm.conf"));
  for (const std::string& line : {
           std::string("ClusterName=test"),
           "SlurmctldHost=" + host + "(127.0.0.1)",
           "SlurmctldPort=" + std::to_string(free_port()),
           "SlurmdPort=" + std::to_string(free_port()),
           std::string("SlurmUser=root"),
           std::string("SlurmdUser=root"),
           std::string("AuthType=auth/munge"),
           "AuthInfo=socket=" + folder + "/munge.sock",
           std::string("CredType=cred/munge"),
           "StateSaveLocation=" + folder + "/state",
           "SlurmdSpoolDir=" + folder + "/spool",
           "SlurmctldPidFile=" + folder + "/slurmctld.pid",
           "SlurmdPidFile=" + folder + "/slurmd.pid",
           std::string("ProctrackType=proctrack/linuxproc"),
           std::string("TaskPlugin=task/none"),
           std::string("SelectType=select/cons_tres"),
           std::string("SelectTypeParameters=CR_CPU"),
           std::string("AccountingStorageType=accounting_storage/none"),
           std::string("JobAcctGatherType=jobacct_gather/none"),
           std::string("ReturnToService=2"),
           std::string("SlurmdParameters=config_overrides"),  // the 16 processors need not be there
           "NodeName=" + host + " NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN",
           "PartitionName=all Nodes=" + host + " Default=YES State=UP MaxTime=INFINITE",
       }) {
    file << line << '\n';
  }
}

void Slurm::start(std::vector<std::string> command) {
  daemons_.push_back(std::make_unique<Process>(std::move(command), std::vector<std::string>{variable()}));
}

Slurm::Slurm() {
  ::mkdir(dir_.file("state").c_str(), 0700);
  ::mkdir(dir_.file("spool").c_str(), 0700);
  configure();
  start({"munged", "--foreground", "--force", "--key-file=" + dir_.file("munge.key"),
         "--socket=" + dir_.file("munge.sock"), "--pid-file=" + dir_.file("munged.pid"),
         "--log-file=" + dir_.file("munged.log"), "--seed-file=" + dir_.file("munged.seed")});
  const auto end = std::chrono::steady_clock::now() + kUp;
  while (::access(dir_.file("munge.sock").c_str(), F_OK) != 0 && std::chrono::steady_clock::now() < end) {
    ::usleep(50'000);
  }
  start({"slurmctld", "-D", "-c", "-f", dir_.file("slurm.conf")});
  start({"slurmd", "-D", "-N", host_name(), "-f", dir_.file("slurm.conf")});
  while (!ready_ && std::chrono::steady_clock::now() < end) {
    ready_ = run({"sinfo", "-h", "-o", "%T"}, {variable()}).output == "idle\n";
    ::usleep(200'000);
  }
}

Slurm::~Slurm() {
  run({"scancel", "--full", "--signal=KILL", "--user=root"}, {variable()});
  // What they have started ends with their jobs, and those with an orderly end of theirs.
  for (auto daemon = daemons_.rbegin(); daemon != daemons_.rend(); ++daemon) {
    (*daemon)->signal(SIGTERM);
    (*daemon)->wait(kDown);
  }
}

std::string Slurm::log() const {
  std::string text;
  for (const auto& daemon : daemons_) text += daemon->output();
  return text;
}

std::unique_ptr<Process> Slurm::srun(int tasks, const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment) const {
  std::vector<std::string> line{"srun", "--mpi=pmix", "-n", std::to_string(tasks)};
  line.insert(line.end(), command.begin(), command.end());
  std::vector<std::string> all{variable(), "SHMEM_GBA=off"};
  all.insert(all.end(), environment.begin(), environment.end());
  return std::make_unique<Process>(line, all);
}

}  // namespace test_support

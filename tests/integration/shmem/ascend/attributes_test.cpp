// SPDX-License-Identifier: Apache-2.0
// Jobs that start by the attributes of Ascend SHMEM's shmem_api.h, each process from a shell of its own.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/fd.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

/// "tcp://127.0.0.1:PORT" with a port that is free at the moment.
std::string free_address() {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof place;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), length), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &length), 0);
  return "tcp://127.0.0.1:" + std::to_string(ntohs(place.sin_port));
}

struct Ended {
  bool clean = true;
  std::string output;
};

Ended run_job(const std::string& how, int size, const std::string& where) {
  std::vector<std::unique_ptr<Process>> pes;
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<std::string> command{test_program("ascend_c_pes"), "attributes",         how,
                                           std::to_string(rank),         std::to_string(size), where};
    pes.push_back(
        std::make_unique<Process>(command, std::vector<std::string>{"SHMEM_GBA=off", "SHMEM_UID_SOCK_IFNAME=lo"}));
  }
  Ended ended;
  for (const auto& pe : pes) {
    const auto exit = pe->wait(Seconds{120});
    ended.clean = ended.clean && exit && exit->clean();
    ended.output += pe->output();
  }
  return ended;
}

class Attributes : public testing::TestWithParam<const char*> {};

TEST_P(Attributes, StartAJobOfSeveralProcesses) {
  for (const int size : {1, 2, 5}) {
    // Another process may take the port in between.
    Ended job;
    for (int attempt = 0; attempt < 5; ++attempt) {
      TempDir dir;
      job = run_job(GetParam(), size, std::string(GetParam()) == "uid" ? dir.file("uid") : free_address());
      if (job.output.find("Address already in use") == std::string::npos) {
        break;
      }
    }
    EXPECT_TRUE(job.clean) << size << job.output;
  }
}

INSTANTIATE_TEST_SUITE_P(By, Attributes, Values("ip_port", "set_attr", "uid"), kNameByParameters);

TEST(AttributesOfAscend, RefuseTlsAndFurtherInstances) {
  const Ended tls = run_job("tls", 1, "tcp://127.0.0.1:1");
  EXPECT_TRUE(tls.clean) << tls.output;
  EXPECT_THAT(tls.output, HasSubstr("aclshmemx_set_conf_store_tls: not supported here"));
  const Ended instance = run_job("instance", 1, "tcp://127.0.0.1:1");
  EXPECT_TRUE(instance.clean) << instance.output;
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/openmpi/mpirun.hpp"

#include <signal.h>

#include <filesystem>

namespace openmpi_test {

Options two_nodes(const std::string& agent) {
  // Without a map, --oversubscribe places all ranks on the first node in Open MPI 5.0.
  Options all{"--mca", "plm_rsh_agent", agent, "--host", "nodea:2,nodeb:2", "--map-by", "ppr:2:node"};
  if (OPENMPI_MAJOR >= 6) {
    // Its own TCP does not connect two nodes by the loopback, and it leaves UCX to hardware that it knows.
    all.insert(all.end(), {"--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"});
  }
  return all;
}

Options last_rank_by(const std::vector<std::string>& command) {
  constexpr const char* kScript =
      "words=$1; shift; [ $((OMPI_COMM_WORLD_RANK + 1)) = $OMPI_COMM_WORLD_SIZE ] || shift $words; exec \"$@\"";
  Options all{"sh", "-c", kScript, "sh", std::to_string(command.size())};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

Mpirun::Mpirun() = default;

Mpirun::~Mpirun() = default;

void Mpirun::SetUp() {
  if (!test_support::run({"mpirun", "--version"}).exit.clean()) {
    GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
  }
}

Outcome Mpirun::run(int ranks, const std::string& device, const std::vector<std::string>& command,
                    const Options& options) const {
  Options all;
  if (!device.empty()) {
    all.insert(all.end(), {"--mca", "coll_gba_device_path", device});
  }
  all.insert(all.end(), options.begin(), options.end());
  return run_program("openmpi_barrier_ranks", ranks, command, all);
}

Outcome Mpirun::run_program(const std::string& program, int ranks, const std::vector<std::string>& command,
                            const Options& options) const {
  return end(*start_program(program, ranks, entered(), command, options));
}

std::unique_ptr<Process> Mpirun::start_program(const std::string& program, int ranks, const std::string& entered,
                                               const std::vector<std::string>& command, const Options& options) const {
  std::vector<std::string> line{"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", std::to_string(ranks)};
  line.insert(line.end(), options.begin(), options.end());
  line.insert(line.end(), {test_support::test_program(program), entered});
  line.insert(line.end(), command.begin(), command.end());
  // mpirun makes folders there, in which two jobs at the same time would collide.
  const std::string temporary = dir_.file(std::to_string(jobs_++));
  std::filesystem::create_directory(temporary);
  const std::vector<std::string> environment{
      "TMPDIR=" + temporary, "OMPI_MCA_plm_rsh_agent=false", "OMPI_MCA_btl_vader_backing_directory=" + temporary,
      "OMPI_MCA_coll_gba_verbose=5",
      // Tests count: unless they say otherwise, the first barrier already is the device's.
      "OMPI_MCA_coll_gba_early_barriers=0",
      std::string("OMPI_MCA_mca_base_component_path=") + OPENMPI_COMPONENTS + ":SYS_DEFAULT"};
  return start(line, environment);
}

Outcome Mpirun::end(Process& job) {
  const auto exit = job.wait(kLimit);
  return {exit.value_or(test_support::Exit{-1, SIGKILL}), job.output()};
}

unsigned long long Mpirun::releases_of(const FakeDevice& device) {
  const auto info = test_support::run({test_support::program("gba"), "info", device.path()});
  EXPECT_TRUE(info.exit.clean()) << info.output;
  return test_support::sum_of(info.output, "releases");
}

std::unique_ptr<Process> Mpirun::start(const std::vector<std::string>& line,
                                       const std::vector<std::string>& environment) const {
  auto all = environment;
  // The machine may have no other network.
  all.insert(all.end(), {"OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo"});
  return std::make_unique<Process>(line, all);
}

}  // namespace openmpi_test

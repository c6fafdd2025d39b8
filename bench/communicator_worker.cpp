// SPDX-License-Identifier: Apache-2.0
// One process of an MPI job that measures the lives of communicators that do no barrier, built by Open MPI's compilers
// with BENCH_OPENMPI_MPI.
//
//   communicator_worker FILE REPEATS NAME      NAME: of the figure
#include <string>
#include <vector>

#include "bench/library.hpp"
#include "bench/worker.hpp"

namespace bench {
namespace {

void live() {
  MPI_Comm created = MPI_COMM_NULL;
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_create(MPI_COMM_WORLD, all, &created);
  MPI_Group_free(&all);
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  MPI_Comm_split(MPI_COMM_WORLD, Library::me() % 2, Library::me(), &half);
  MPI_Comm_free(&created);
  MPI_Comm_free(&duplicate);
  MPI_Comm_free(&half);
}

std::vector<Item> items(const Worker& /*worker*/, const std::vector<std::string>& names) {
  return {{.name = names.front(),
           .figure = [](std::uint32_t count) { return time_each(static_cast<int>(count), live); },
           .most = 5'000,
           .least = 10,
           .nanoseconds = 2e7}};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, bench::items);
}

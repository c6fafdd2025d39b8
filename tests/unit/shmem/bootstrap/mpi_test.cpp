// SPDX-License-Identifier: Apache-2.0
// The bootstrap by MPI, with a fake plug-in: PEs are threads, and messages pass through one table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/mpi.hpp"
#include "tests/support/process.hpp"

namespace shmem {
namespace {

/// The state of the fake MPI.
struct World {
  explicit World(int pes) : size(pes) {}
  const int size;
  std::atomic<bool> all_come{true};
  std::atomic<int> send_status{0};
  std::atomic<int> open{0};
  std::atomic<int> abandoned{0};

  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<std::string>> messages;  // from, to
};

}  // namespace
}  // namespace shmem

/// A PE.
struct shmem_mpi_job {
  shmem::World* world;
  int rank;
  struct Receive {
    int from;
    char* bytes;
    std::size_t room;
  };
  std::vector<Receive> receives;
};

namespace shmem {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint64_t kSent = ~std::uint64_t{0};

/// `communicator` points to the PE's shmem_mpi_job.
int fake_open(const void* communicator, shmem_mpi_job** job, char* text, std::size_t room) {
  *job = const_cast<shmem_mpi_job*>(static_cast<const shmem_mpi_job*>(communicator));
  if (*job == nullptr) {
    std::snprintf(text, room, "no communicator");
  }
  if (*job != nullptr) {
    ++(*job)->world->open;
  }
  return *job == nullptr ? 5 : 0;
}
int fake_opened(shmem_mpi_job* job, int* done) {
  *done = job->world->all_come ? 1 : 0;
  return 0;
}
void fake_place(const shmem_mpi_job* job, int* rank, int* size) {
  *rank = job->rank;
  *size = job->world->size;
}
int fake_send(shmem_mpi_job* job, int rank, const void* bytes, std::size_t size, shmem_mpi_transfer* transfer) {
  const std::scoped_lock lock(job->world->mutex);
  job->world->messages[{job->rank, rank}].emplace_back(static_cast<const char*>(bytes), size);
  transfer->request = kSent;
  return job->world->send_status;
}
int fake_receive(shmem_mpi_job* job, int rank, void* bytes, std::size_t room, shmem_mpi_transfer* transfer) {
  transfer->request = job->receives.size();
  job->receives.push_back({rank, static_cast<char*>(bytes), room});
  return 0;
}
int fake_test(shmem_mpi_job* job, shmem_mpi_transfer* transfer, int* done, std::size_t* size) {
  *done = 1;
  *size = ~std::size_t{0};  // meaningless after a send
  if (transfer->request == kSent) {
    return 0;
  }
  const auto& receive = job->receives[transfer->request];
  const std::scoped_lock lock(job->world->mutex);
  auto& queue = job->world->messages[{receive.from, job->rank}];
  *done = queue.empty() ? 0 : 1;
  if (queue.empty()) {
    return 0;
  }
  *size = queue.front().copy(receive.bytes, receive.room);
  const bool cut = queue.front().size() > receive.room;
  queue.pop_front();
  return cut ? 15 : 0;  // MPI_ERR_TRUNCATE
}
void fake_abort(shmem_mpi_job* /*job*/, int /*status*/) {}
void fake_close(shmem_mpi_job* job, int unfinished) {
  --job->world->open;
  job->world->abandoned += unfinished;
}
void fake_text(int status, char* text, std::size_t room) {
  std::snprintf(text, room, "status %d", status);
}
constexpr shmem_mpi_plugin kFake{SHMEM_MPI_PLUGIN_VERSION,
                                 fake_open,
                                 fake_opened,
                                 fake_place,
                                 fake_send,
                                 fake_receive,
                                 fake_test,
                                 fake_abort,
                                 fake_close,
                                 fake_text};

template <typename T>
std::string error_of(const Result<T>& result) {
  return result ? "no error" : result.error().text;
}

/// The result of `body` in each PE.
std::vector<std::string> in_pes(World& world, const std::function<std::string(MpiBootstrap&)>& body,
                                milliseconds limit = std::chrono::seconds(60)) {
  std::vector<std::string> texts(static_cast<std::size_t>(world.size));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(world.size));
  for (int rank = 0; rank < world.size; ++rank) {
    threads.emplace_back([&, rank] {
      const shmem_mpi_job job{&world, rank, {}};
      auto pe = MpiBootstrap::join(kFake, &job, limit);
      texts[static_cast<std::size_t>(rank)] = pe ? body(**pe) : pe.error().text;
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return texts;
}

TEST(Mpi, GathersAndLeaves) {
  World world(4);
  EXPECT_THAT(in_pes(world,
                     [](MpiBootstrap& pe) -> std::string {
                       for (int i = 0; i < 20; ++i) {
                         const auto all = allgather(pe, pe.rank() * 100 + i);
                         if (!all) {
                           return all.error().text;
                         }
                         if (*all != std::vector<int>{i, 100 + i, 200 + i, 300 + i}) {
                           return "wrong";
                         }
                         if (auto met = pe.barrier(); !met) {
                           return met.error().text;
                         }
                       }
                       pe.leave();
                       return "right";
                     }),
              Each("right"));
  EXPECT_EQ(world.open, 0);
  EXPECT_EQ(world.abandoned, 0);
}

TEST(Mpi, WorksInACommunicatorOfOne) {
  World world(1);
  EXPECT_THAT(in_pes(world, [](MpiBootstrap& pe) { return error_of(allgather(pe, 1)); }), Each("no error"));
}

TEST(Mpi, TellsAllPesWhichOneDoesNotCome) {
  World world(4);
  const auto have_come = [&world] {
    const std::scoped_lock lock(world.mutex);
    return !world.messages[{1, 0}].empty() && !world.messages[{3, 0}].empty();
  };
  const auto texts = in_pes(
      world,
      [&have_come](MpiBootstrap& pe) {
        if (pe.rank() == 2) {
          return std::string();
        }
        while (pe.rank() == 0 && !have_come()) {
          std::this_thread::sleep_for(milliseconds(1));
        }
        std::string first = error_of(pe.barrier());
        EXPECT_EQ(error_of(allgather(pe, 1)), first);  // the failure is permanent
        return first;
      },
      milliseconds(200));
  for (const std::size_t pe : {0U, 1U, 3U}) {
    EXPECT_THAT(texts[pe], HasSubstr("PE 0 waited 0.200 s for PE 2 to come"));
  }
  EXPECT_EQ(world.open, 0);
  EXPECT_EQ(world.abandoned, 1);  // PE 0's job, because MPI may still write to its receives
}

TEST(Mpi, ReportsPesInDifferentSteps) {
  for (const std::size_t size : {2U, 40U}) {
    World world(3);
    const auto texts = in_pes(world, [size](MpiBootstrap& pe) {
      return error_of(pe.allgather(std::vector<std::byte>(pe.rank() == 1 ? size : 8)));
    });
    EXPECT_THAT(texts[0], AnyOf(HasSubstr("not in the same step of the job's bootstrap: PE 0 sends 8 bytes, PE 1 "
                                          "sends 2"),
                                HasSubstr("from PE 1 (are all in the same step?): status 15")))
        << size;
    EXPECT_EQ(texts[1], texts[0]);
    EXPECT_EQ(texts[2], texts[0]);
  }
}

TEST(Mpi, SaysWhyItCannotStart) {
  EXPECT_THAT(error_of(MpiBootstrap::join(kFake, nullptr, milliseconds(200))),
              HasSubstr("cannot start by MPI: no communicator"));
  shmem_mpi_plugin other = kFake;
  other.version = 99;
  EXPECT_THAT(error_of(MpiBootstrap::join(other, nullptr, milliseconds(200))), HasSubstr("has version 99"));
  World world(2);
  world.all_come = false;
  EXPECT_THAT(in_pes(
                  world, [](MpiBootstrap& /*pe*/) { return std::string("opened"); }, milliseconds(200)),
              Each(HasSubstr("waited 0.200 s for all processes of the communicator")));
  EXPECT_EQ(world.abandoned, 2);
}

TEST(Mpi, DoesNotWaitForAPlugInThatIsAFifo) {
  const test_support::TempDir dir;
  const std::string fifo = dir.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_of(join_mpi_job(fifo, nullptr, milliseconds(200))),
              AllOf(HasSubstr(fifo + ": it is not a regular file"), HasSubstr("SHMEM_MPI_PLUGIN")));
  EXPECT_THAT(error_of(join_mpi_job(dir.path(), nullptr, milliseconds(200))), HasSubstr(dir.path()));
}

TEST(Mpi, ReportsTheErrorOfMpi) {
  World world(2);
  world.send_status = 16;
  const auto texts = in_pes(world, [](MpiBootstrap& pe) { return error_of(pe.barrier()); });
  EXPECT_THAT(texts[1], AllOf(HasSubstr("MPI_Isend"), HasSubstr("status 16")));
}

}  // namespace
}  // namespace shmem

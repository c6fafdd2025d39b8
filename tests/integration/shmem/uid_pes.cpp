// SPDX-License-Identifier: Apache-2.0
// A PE that no launcher has started: uid_pes FILE RANK SIZE ACTION. The first PE publishes the job's unique id in FILE.
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr std::int64_t kHeap = 4 << 20;

[[noreturn]] void give_up(const char* call, int code) {
  std::printf("%s gave %d: %s\n", call, code, shmemx_error_text());
  std::exit(3);
}

void must(const char* call, int code) {
  if (code != 0) give_up(call, code);
}

void publish(const std::string& file, const shmemx_uniqueid_t& id) {
  std::ofstream(file + ".new", std::ios::binary).write(reinterpret_cast<const char*>(&id), sizeof(id));
  std::rename((file + ".new").c_str(), file.c_str());
}

shmemx_uniqueid_t published(const std::string& file) {
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  for (int i = 0; i < 3000; ++i) {
    if (std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&id), sizeof(id))) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::printf("nobody published %s\n", file.c_str());
  std::exit(4);
}

struct Job {
  std::string file;
  int rank;
  int size;
};

/// `server`: the PE that makes the id.
int start(const Job& job, int server = 0) {
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  if (job.rank == server) {
    must("shmemx_get_uniqueid", shmemx_get_uniqueid(&id));
    publish(job.file, id);
  } else {
    id = published(job.file);
  }
  shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
  must("shmemx_set_attr_uniqueid_args", shmemx_set_attr_uniqueid_args(job.rank, job.size, kHeap, &id, &attr));
  return shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr);
}

/// Each PE gives its number to the next.
void hello() {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* from = static_cast<int*>(shmem_malloc(sizeof(int)));
  *from = -1;
  shmem_barrier_all();
  shmem_putmem(from, &me, sizeof(me), (me + 1) % pes);
  shmem_barrier_all();
  std::printf("PE %d of %d: hello from %d\n", me, pes, *from);
  std::fflush(stdout);
  if (*from != (me + pes - 1) % pes) std::_Exit(5);
  shmem_free(from);
}

void run_hello(const Job& job, int server) {
  must("shmemx_init_attr", start(job, server));
  hello();
  shmem_finalize();
}

void run_again(Job job) {
  if (shmemx_init_status() != SHMEMX_STATUS_NOT_INITIALIZED) give_up("shmemx_init_status", 0);
  must("shmemx_init_attr", start(job));
  if (shmemx_init_status() != SHMEMX_STATUS_IS_INITIALIZED) give_up("shmemx_init_status", 0);
  const int twice = shmemx_init_attr(SHMEMX_INIT_WITH_DEFAULT, nullptr);
  if (twice != -EALREADY) give_up("a second shmemx_init_attr", twice);
  hello();
  shmem_finalize();
  job.file += ".again";
  if (--job.size == job.rank) return;
  must("the third shmemx_init_attr", start(job));
  hello();
  shmem_finalize();
}

/// PE 1 ends the job while PE 0 waits for the others and these for something else.
void run_exit(const Job& job) {
  must("shmemx_init_attr", start(job));
  shmem_barrier_all();
  if (job.rank == 1) shmem_global_exit(7);
  if (job.rank == 0) shmem_barrier_all();
  for (;;) ::pause();
}

/// PE `victim` dies while the others wait.
void run_die(const Job& job, int victim) {
  must("shmemx_init_attr", start(job));
  shmem_barrier_all();
  if (job.rank == victim) ::raise(SIGKILL);
  std::printf("barrier: %d\n", shmem_team_sync(SHMEM_TEAM_WORLD));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Job job{argv[1], std::atoi(argv[2]), std::atoi(argv[3])};
  const std::string action = argv[4];
  if (action == "hello") run_hello(job, 0);
  if (action == "hello-by-last") run_hello(job, job.size - 1);
  if (action == "again") run_again(job);
  if (action == "exit") run_exit(job);
  if (action == "die") run_die(job, 1);
  if (action == "die-server") run_die(job, 0);
  return 0;
}

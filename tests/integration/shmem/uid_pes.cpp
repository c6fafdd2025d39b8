// SPDX-License-Identifier: Apache-2.0
// A PE started without a launcher: uid FILE RANK SIZE ACTION. The first PE writes the job's unique id to FILE.
#include <shmem_device.h>
#include <signal.h>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

constexpr std::int64_t kHeap = 4 << 20;

[[noreturn]] void give_up(const char* call, int code) {
  std::printf("%s gave %d: %s\n", call, code, shmemx_error_text());
  std::exit(3);
}

void must(const char* call, int code) {
  if (code != 0) {
    give_up(call, code);
  }
}

void publish(const std::string& file, const shmemx_uniqueid_t& id) {
  std::ofstream(file + ".new", std::ios::binary).write(reinterpret_cast<const char*>(&id), sizeof(id));
  std::rename((file + ".new").c_str(), file.c_str());
}

shmemx_uniqueid_t published(const std::string& file) {
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  for (int i = 0; i < 12'000; ++i) {
    if (std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&id), sizeof(id))) {
      return id;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::printf("no PE published %s\n", file.c_str());
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

/// Each PE puts its number to the next one.
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
  if (*from != (me + pes - 1) % pes) {
    std::_Exit(5);
  }
  shmem_free(from);
}

void run_hello(const Job& job, int server) {
  must("shmemx_init_attr", start(job, server));
  hello();
  shmem_finalize();
}

void run_again(Job job) {
  if (shmemx_init_status() != SHMEMX_STATUS_NOT_INITIALIZED) {
    give_up("shmemx_init_status", 0);
  }
  must("shmemx_init_attr", start(job));
  if (shmemx_init_status() != SHMEMX_STATUS_IS_INITIALIZED) {
    give_up("shmemx_init_status", 0);
  }
  const int twice = shmemx_init_attr(SHMEMX_INIT_WITH_DEFAULT, nullptr);
  if (twice != -EALREADY) {
    give_up("a second shmemx_init_attr", twice);
  }
  hello();
  shmem_finalize();
  job.file += ".again";
  if (--job.size == job.rank) {
    return;
  }
  must("the third shmemx_init_attr", start(job));
  hello();
  shmem_finalize();
}

/// PE `ending` ends the job while the PE before it waits in a barrier and the others pause.
void run_exit(const Job& job, int ending) {
  must("shmemx_init_attr", start(job));
  shmem_barrier_all();
  if (job.rank == ending) {
    shmem_global_exit(7);
  }
  if (job.rank == (ending + job.size - 1) % job.size) {
    shmem_barrier_all();
  }
  for (;;) {
    ::pause();
  }
}

/// PE `victim` dies while the others wait.
void run_die(const Job& job, int victim) {
  must("shmemx_init_attr", start(job));
  shmem_barrier_all();
  if (job.rank == victim) {
    ::raise(SIGKILL);
  }
  std::printf("barrier: %d\n", shmem_team_sync(SHMEM_TEAM_WORLD));
}

/// The same while they wait for a word.
void run_die_word(const Job& job) {
  must("shmemx_init_attr", start(job));
  auto* word = static_cast<std::uint64_t*>(shmem_calloc(1, sizeof(std::uint64_t)));
  if (job.rank == 1) {
    ::raise(SIGKILL);
  }
  shmem_signal_wait_until(word, SHMEM_CMP_NE, 0);
  std::printf("word: %llu\n", static_cast<unsigned long long>(*word));
}

/// The same while the cores of the others wait, in a barrier of all PEs or of a list.
void run_die_kernel(const Job& job, bool list) {
  must("shmemx_init_attr", start(job));
  shmem_barrier_all();
  if (job.rank == 1) {
    ::raise(SIGKILL);
  }
  const shmemx_kernel_t all = [](shmemx_core_t*, void*) { shmem_barrier_all(); };
  const shmemx_kernel_t some = [](shmemx_core_t*, void*) {
    const std::array<std::uint32_t, 3> pes{2, 1, 0};
    shmemx_partial_barrier(SHMEM_TEAM_WORLD, pes.data(), 3);
  };
  std::printf("kernel: %d\n", shmemx_launch(2, list ? some : all, nullptr));
}

/// Expects that `call` returned `expected` with an error text that contains `why`.
void expect_error(const char* call, int code, int expected, const char* why) {
  if (code != expected || std::strstr(shmemx_error_text(), why) == nullptr) {
    give_up(call, code);
  }
}

/// Each wrong argument by itself; the library can still be started afterwards.
void run_wrong(const Job& job) {
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
  const auto set = [&](int my_pe, int n_pes, std::int64_t size) {
    return shmemx_set_attr_uniqueid_args(my_pe, n_pes, size, &id, &attr);
  };
  expect_error("uid NULL", shmemx_get_uniqueid(nullptr), -EINVAL, "uid is NULL");
  expect_error("set uid NULL", shmemx_set_attr_uniqueid_args(0, 1, 0, nullptr, &attr), -EINVAL, "uid is NULL");
  expect_error("set attr NULL", shmemx_set_attr_uniqueid_args(0, 1, 0, &id, nullptr), -EINVAL, "attr is NULL");
  expect_error("my_pe -1", set(-1, 2, 0), -EINVAL, "my_pe is -1");
  expect_error("my_pe 2", set(2, 2, 0), -EINVAL, "my_pe is 2, not 0 to n_pes - 1 = 1");
  expect_error("n_pes 0", set(0, 0, 0), -EINVAL, "n_pes is 0, not 1 to 16384");
  expect_error("n_pes 16385", set(0, 16385, 0), -EINVAL, "n_pes is 16385");
  expect_error("size -1", set(0, 1, -1), -EINVAL, "local_mem_size is -1");

  const auto init = [&](unsigned int flags) { return shmemx_init_attr(flags, &attr); };
  attr = SHMEMX_INIT_ATTR_INITIALIZER;
  expect_error("flags 0", init(0), -EINVAL, "flags are 0");
  expect_error("flags 9", init(9), -EINVAL, "flags are 9");
  expect_error("no attr", shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, nullptr), -EINVAL, "attr is NULL");
  expect_error("no pes", init(SHMEMX_INIT_WITH_UNIQUEID), -EINVAL, "n_pes is 0");
  attr.n_pes = 1;
  expect_error("no id", init(SHMEMX_INIT_WITH_UNIQUEID), -EINVAL, "comm_args is NULL");
  attr.comm_args = &id;
  expect_error("empty id", init(SHMEMX_INIT_WITH_UNIQUEID), -EINVAL, "was it sent to all PEs?");
  id.version = 7;
  expect_error("old id", init(SHMEMX_INIT_WITH_UNIQUEID), -EINVAL, "the unique id has version 7");
  std::memset(attr.ip_port, 'x', sizeof(attr.ip_port));
  expect_error("endless", init(SHMEMX_INIT_WITH_DEFAULT), -EINVAL, "ip_port has no terminating null byte");
  std::strcpy(attr.ip_port, "127.0.0.1:0");
  expect_error("port 0", init(SHMEMX_INIT_WITH_DEFAULT), -EINVAL, "cannot know which port");
  std::strcpy(attr.ip_port, "nowhere");
  expect_error("no port", init(SHMEMX_INIT_WITH_DEFAULT), -EINVAL, "nowhere: a port is missing");
  attr.version = 0;
  expect_error("version 0", init(SHMEMX_INIT_WITH_DEFAULT), -EINVAL, "attr->version is 0");
  attr = SHMEMX_INIT_ATTR_INITIALIZER;
  attr.my_pe = 1;
  attr.n_pes = 2;
  expect_error("not the launcher's", init(SHMEMX_INIT_WITH_DEFAULT), -EINVAL, "its launcher says PE 0 of 1");
  attr = SHMEMX_INIT_ATTR_INITIALIZER;
  attr.local_mem_size = UINT64_MAX;
  expect_error("large", init(SHMEMX_INIT_WITH_DEFAULT), -ENOMEM, "SHMEM_SYMMETRIC_SIZE");
  if (shmemx_init_status() != SHMEMX_STATUS_NOT_INITIALIZED) {
    give_up("shmemx_init_status", 1);
  }

  ::setenv("SHMEM_GBA", "perhaps", 1);
  expect_error("environment", init(SHMEMX_INIT_WITH_DEFAULT), -EINVAL, "SHMEM_GBA=perhaps");
  expect_error("environment", shmemx_get_uniqueid(&id), -EINVAL, "SHMEM_GBA=perhaps");
  ::setenv("SHMEM_GBA", "off", 1);
  ::setenv("SHMEM_UID_SOCK_IFNAME", "nosuch0", 1);
  expect_error("interface", shmemx_get_uniqueid(&id), -EADDRNOTAVAIL, "SHMEM_UID_SOCK_IFNAME=nosuch0");
  ::setenv("SHMEM_UID_SOCK_IFNAME", "lo", 1);
  run_hello(job, 0);
  must("the environment's", shmemx_init_attr(SHMEMX_INIT_WITH_DEFAULT, nullptr));
  hello();
  shmem_finalize();
}

}  // namespace

PE_PART(uid) {
  if (argc < 5) {
    return 2;
  }
  const Job job{argv[1], std::atoi(argv[2]), std::atoi(argv[3])};
  pe_checks::act(argv[4], {{"hello", [&] { run_hello(job, 0); }},
                           {"hello-by-last", [&] { run_hello(job, job.size - 1); }},
                           {"again", [&] { run_again(job); }},
                           {"exit", [&] { run_exit(job, 1); }},
                           {"exit-by-server", [&] { run_exit(job, 0); }},
                           {"die", [&] { run_die(job, 1); }},
                           {"die-server", [&] { run_die(job, 0); }},
                           {"die-word", [&] { run_die_word(job); }},
                           {"die-kernel", [&] { run_die_kernel(job, false); }},
                           {"die-kernel-list", [&] { run_die_kernel(job, true); }},
                           {"wrong", [&] { run_wrong(job); }}});
  return 0;
}

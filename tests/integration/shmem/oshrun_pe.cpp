// SPDX-License-Identifier: Apache-2.0
// A PE for tests of the launcher. It uses only the bootstrap.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <thread>

#include "shmem/bootstrap/bootstrap.hpp"

namespace {

using Arguments = std::vector<std::string>;

[[noreturn]] void give_up(const shmem::Error& error) {
  std::cerr << error.text << std::endl;
  std::_Exit(1);
}

void barrier(shmem::Bootstrap& bootstrap) {
  if (auto done = bootstrap.barrier(); !done) {
    give_up(done.error());
  }
}

[[noreturn]] void sleep_forever() {
  for (;;) {
    ::pause();
  }
}

int number(const Arguments& arguments, std::size_t index) {
  return std::atoi(arguments.at(index).c_str());
}

/// "barriers N": N barriers, then exits.
int run_barriers(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  for (int i = 0; i < number(arguments, 1); ++i) {
    barrier(bootstrap);
  }
  bootstrap.leave();
  if (bootstrap.rank() == 0) {
    std::cout << "all done" << std::endl;
  }
  return 0;
}

/// "die PE SIGNAL": one PE dies while the others wait for it.
int run_die(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  barrier(bootstrap);
  if (bootstrap.rank() == number(arguments, 1)) {
    ::raise(number(arguments, 2));
  }
  barrier(bootstrap);
  return 0;
}

/// The process that PE `pe` is. All PEs call it together.
pid_t pid_of(shmem::Bootstrap& bootstrap, int pe) {
  const pid_t own = ::getpid();
  const auto all = bootstrap.allgather(std::as_bytes(std::span(&own, 1)));
  if (!all) {
    give_up(all.error());
  }
  pid_t pid = 0;
  std::memcpy(&pid, all->data() + static_cast<std::size_t>(pe) * sizeof(pid), sizeof(pid));
  return pid;
}

/// "die_late PE SIGNAL": a neighbour of PE reports its loss and ends the job, and only then PE dies.
int run_die_late(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  const int victim = number(arguments, 1);
  const pid_t pid = pid_of(bootstrap, victim);
  if (bootstrap.rank() == (victim + 1) % bootstrap.size()) {
    const int status = bootstrap.abort(1, "cannot put 8 bytes to a PE, which is lost");
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    ::kill(pid, number(arguments, 2));
    return status;
  }
  if (bootstrap.rank() == victim) {
    ::pause();
  }
  barrier(bootstrap);
  return 0;
}

/// Takes the kernel some milliseconds to release, after it has begun to end the process.
void have_much_memory() {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const int file = ::memfd_create("much", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, kBytes) != 0) {
    give_up({std::errc::not_enough_memory, "cannot have much memory"});
  }
  for (int i = 0; i < 16; ++i) {
    if (::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0) == MAP_FAILED) {
      give_up({std::errc::not_enough_memory, "cannot have much memory"});
    }
  }
}

bool is_dying(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  return maps.peek() == std::ifstream::traits_type::eof();  // the memory is given up first
}

/// "die_slowly PE SIGNAL STATUS [abort]": a neighbour of PE exits with STATUS while PE is dying; first it ends the job.
int run_die_slowly(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  const int victim = number(arguments, 1);
  if (bootstrap.rank() == victim) {
    have_much_memory();
  }
  const pid_t pid = pid_of(bootstrap, victim);
  if (bootstrap.rank() == (victim + 1) % bootstrap.size()) {
    ::kill(pid, number(arguments, 2));
    while (!is_dying(pid)) {
    }
    if (arguments.size() > 4) {
      bootstrap.abort(number(arguments, 3), "a neighbour is lost");
      while (::kill(pid, 0) == 0) {  // so that oshrun learns of both by other means than this end
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
    }
    std::_Exit(number(arguments, 3));
  }
  barrier(bootstrap);
  return 0;
}

/// "exit_unseen PE STATUS": PE exits while oshrun stands still, which a neighbour notices and reports.
int run_exit_unseen(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  const int victim = number(arguments, 1);
  const bool tells = bootstrap.rank() == (victim + 1) % bootstrap.size();
  const pid_t own = ::getpid();
  const auto all = bootstrap.allgather(std::as_bytes(std::span(&own, 1)));
  if (!all) {
    give_up(all.error());
  }
  if (tells) {
    ::kill(::getppid(), SIGSTOP);
  }
  barrier(bootstrap);
  if (bootstrap.rank() == victim) {
    std::_Exit(number(arguments, 2));
  }
  if (tells) {
    pid_t pid = 0;
    std::memcpy(&pid, all->data() + static_cast<std::size_t>(victim) * sizeof(pid), sizeof(pid));
    while (!is_dying(pid)) {
    }
    bootstrap.abort(1, "a neighbour is lost");
    ::kill(::getppid(), SIGCONT);
    return 1;
  }
  barrier(bootstrap);
  return 0;
}

/// "abort PE STATUS": one PE ends the job while the others wait for it.
int run_abort(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  barrier(bootstrap);
  if (bootstrap.rank() == number(arguments, 1)) {
    const int status = number(arguments, 2);
    bootstrap.abort(status, "the test wants it");
    return status;
  }
  barrier(bootstrap);
  return 0;
}

/// "desert PE": one PE exits with status 0 without leaving the job.
int run_desert(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  barrier(bootstrap);
  if (bootstrap.rank() != number(arguments, 1)) {
    sleep_forever();
  }
  return 0;
}

/// "late PE STATUS": one PE fails after it has left the job.
int run_late(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  barrier(bootstrap);
  bootstrap.leave();
  if (bootstrap.rank() == number(arguments, 1)) {
    return number(arguments, 2);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  std::cout << "undisturbed" << std::endl;
  return 0;
}

/// "stay": prints a line and ignores the signals that end a job.
int run_stay(shmem::Bootstrap& bootstrap, const Arguments& /*arguments*/) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::signal(signal, SIG_IGN);
  }
  barrier(bootstrap);
  std::cout << "staying " << bootstrap.rank() << std::endl;
  sleep_forever();
}

/// "print TEXT": a line that is not flushed.
int run_print(shmem::Bootstrap& /*bootstrap*/, const Arguments& arguments) {
  std::printf("%s\n", arguments.at(1).c_str());
  sleep_forever();
}

/// "nested PROGRAM": starts itself as a PE starts a helper.
int run_nested(shmem::Bootstrap& bootstrap, const Arguments& arguments) {
  const int status = std::system((arguments.at(1) + " barriers 1").c_str());
  bootstrap.leave();
  return WEXITSTATUS(status);
}

struct Command {
  const char* name;
  int (*body)(shmem::Bootstrap& bootstrap, const Arguments& arguments);
};
constexpr Command kCommands[] = {{"barriers", run_barriers},
                                 {"die", run_die},
                                 {"die_late", run_die_late},
                                 {"abort", run_abort},
                                 {"desert", run_desert},
                                 {"late", run_late},
                                 {"stay", run_stay},
                                 {"print", run_print},
                                 {"nested", run_nested},
                                 {"die_slowly", run_die_slowly},
                                 {"exit_unseen", run_exit_unseen}};

int run(const Arguments& arguments) {
  const auto options = shmem::read_options(shmem::process_environment());
  if (!options) {
    give_up(options.error());
  }
  auto bootstrap = shmem::make_bootstrap(shmem::bootstrap_request(*options));
  if (!bootstrap) {
    give_up(bootstrap.error());
  }
  const std::string& what = arguments.at(0);
  for (const auto& [name, body] : kCommands) {
    if (what == name) {
      return body(**bootstrap, arguments);
    }
  }
  std::cerr << "oshrun_pe: cannot " << what << std::endl;
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  return run(Arguments(argv + 1, argv + argc));
}

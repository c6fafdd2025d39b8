// SPDX-License-Identifier: Apache-2.0
// Programs that have errors returned: no failure ends them, and they can go on as a new job.
#include <gtest/gtest.h>
#include <shmem.h>
#include <shmemx.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

/// In a process of its own, because a process has one library: "" if `body` returned that, else what it returned, or
/// how the process ended.
std::string in_process(const std::function<std::string()>& body) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) {
    return "no pipe";
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(pipe[0]);
    const std::string text = body();
    const auto written = ::write(pipe[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 9);
  }
  ::close(pipe[1]);
  std::string text;
  std::array<char, 512> part{};
  for (ssize_t got = 0; (got = ::read(pipe[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? text : text + " (ended with status " + std::to_string(status) + ")";
}

/// "" if the last call has failed with `error`, and with `part` in its text.
std::string expect_error(int error, const std::string& part) {
  const int got = shmemx_take_error();
  const std::string text = shmemx_error_text();
  const bool good = got == -error && text.find(part) != std::string::npos;
  return good ? "" : "got " + std::to_string(got) + ": " + text;
}

/// A channel by which one process gives a unique id to others.
class IdPipe {
 public:
  IdPipe() { static_cast<void>(::pipe(ends_.data())); }
  void give(const shmemx_uniqueid_t& id, int times) const {
    for (int i = 0; i < times; ++i) {
      static_cast<void>(::write(ends_[1], &id, sizeof id));
    }
  }
  [[nodiscard]] shmemx_uniqueid_t take() const {
    shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
    static_cast<void>(::read(ends_[0], &id, sizeof id));
    return id;
  }

 private:
  std::array<int, 2> ends_{};
};

int start(int me, int pes, const IdPipe& ids) {
  shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
  if (me == 0) {
    shmemx_get_uniqueid(&id);
    ids.give(id, pes - 1);
  } else {
    id = ids.take();
  }
  shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
  const int ok = shmemx_set_attr_uniqueid_args(me, pes, 4 << 20, &id, &attr);
  return ok != 0 ? ok : shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr);
}

class ErrorsReturn : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SHMEM_GBA", "off", 1);
    ::setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:0", 1);
  }
};

TEST_F(ErrorsReturn, ACallBeforeTheStartFails) {
  EXPECT_EQ("", in_process([]() -> std::string {
              shmemx_set_errors_return(1);
              shmem_barrier_all();
              if (auto bad = expect_error(EPERM, "shmem_barrier_all was called before shmem_init"); !bad.empty()) {
                return bad;
              }
              if (shmem_malloc(8) != nullptr || shmem_team_sync(SHMEM_TEAM_WORLD) >= 0) {
                return "a call succeeded";
              }
              return expect_error(EPERM, "shmem_team_sync");
            }));
}

TEST_F(ErrorsReturn, ARefusedStartIsAnErrorAndCanBeRepeated) {
  EXPECT_EQ("", in_process([]() -> std::string {
              shmemx_set_errors_return(1);
              ::setenv("SHMEM_SYMMETRIC_SIZE", "many", 1);
              shmem_init();
              if (auto bad = expect_error(EINVAL, "SHMEM_SYMMETRIC_SIZE"); !bad.empty()) {
                return bad;
              }
              ::setenv("SHMEM_SYMMETRIC_SIZE", "4m", 1);
              shmem_init();
              shmem_barrier_all();
              shmem_finalize();
              return shmemx_take_error() == 0 ? "" : shmemx_error_text();
            }));
}

TEST_F(ErrorsReturn, WrongArgumentsAreErrorsOfTheCall) {
  EXPECT_EQ("", in_process([]() -> std::string {
              shmemx_set_errors_return(1);
              shmem_init();
              int value = 7;
              shmem_putmem(&value, &value, sizeof value, 5);
              std::string bad = expect_error(EINVAL, "there is no PE 5 in this job of 1");
              if (bad.empty()) {
                std::vector<int> mine(4);
                shmem_int_p(mine.data(), 1, 0);
                bad = expect_error(EINVAL, "not inside the symmetric heap");
              }
              // The first of several is kept, and taking it clears it.
              shmem_quiet();
              shmem_putmem(&value, &value, sizeof value, 6);
              shmem_putmem(&value, &value, sizeof value, 7);
              if (shmemx_take_error() != -EINVAL || shmemx_take_error() != 0) {
                return "taking an error does not clear it";
              }
              shmem_finalize();
              return bad;
            }));
}

std::string survive(int me, const IdPipe& first, const IdPipe& second) {
  shmemx_set_errors_return(1);
  if (start(me, 3, first) != 0) {
    return shmemx_error_text();
  }
  shmem_barrier_all();
  if (me == 2) {
    ::raise(SIGKILL);
  }
  shmem_barrier_all();
  const std::string first_text = shmemx_error_text();
  const int error = shmemx_take_error();
  if (error >= 0 || first_text.find("PE 2") == std::string::npos) {
    return "the barrier gave " + std::to_string(error) + ": " + first_text;
  }
  shmem_barrier_all();
  if (auto bad = expect_error(-error, first_text); !bad.empty()) {
    return "the next barrier: " + bad;
  }
  shmem_finalize();
  if (shmemx_take_error() >= 0 || shmemx_init_status() != SHMEMX_STATUS_NOT_INITIALIZED) {
    return "shmem_finalize did not end the library with an error";
  }
  if (start(me, 2, second) != 0) {
    return std::string("the new job: ") + shmemx_error_text();
  }
  auto* word = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  shmem_long_atomic_inc(word, 1 - me);
  shmem_barrier_all();
  const bool came = *word == 1;
  shmem_finalize();
  return came && shmemx_take_error() == 0 ? "" : std::string("in the new job: ") + shmemx_error_text();
}

TEST_F(ErrorsReturn, SurvivorsOfADeadPeStartANewJob) {
  const IdPipe first;
  const IdPipe second;
  const pid_t victim = ::fork();
  if (victim == 0) {
    survive(2, first, second);
    ::_exit(1);
  }
  const pid_t other = ::fork();
  if (other == 0) {
    ::_exit(in_process([&] { return survive(1, first, second); }).empty() ? 0 : 1);
  }
  EXPECT_EQ("", in_process([&] { return survive(0, first, second); }));
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(0, status);
  ::waitpid(victim, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

}  // namespace

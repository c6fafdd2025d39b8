// SPDX-License-Identifier: Apache-2.0
// Waits for words of this PE, on the host and on cores: comparisons, and how a wait ends.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "shmem/api/death_watch.hpp"
#include "shmem/api/kernel_core.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/config/log.hpp"
#include "shmem/layout/parking.hpp"

namespace shmem::api {

/// Ends the job if `cmp` is not one of SHMEM_CMP_*.
inline void check_cmp(const Runtime& runtime, const char* call, int cmp) {
  if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE) {
    end_job(runtime, call, "{} is not a comparison (SHMEM_CMP_EQ ... SHMEM_CMP_LE)", cmp);
  }
}

/// REQUIRES: a valid `cmp`.
template <typename T>
bool compare(T value, int cmp, T with) {
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return value == with;
    case SHMEM_CMP_NE:
      return value != with;
    case SHMEM_CMP_GT:
      return value > with;
    case SHMEM_CMP_GE:
      return value >= with;
    case SHMEM_CMP_LT:
      return value < with;
    default:
      return value <= with;
  }
}

/// "3, which is not GE 5 (at 0x7f0000000040, offset 64 of the symmetric heap)"
template <typename T>
std::string unmet(const Runtime& runtime, const void* word, T value, int cmp, T with) {
  constexpr std::array kNames{"EQ", "NE", "GT", "GE", "LT", "LE"};
  return fmt::format("{}, which is not {} {} ({})", std::to_string(value), kNames[static_cast<std::size_t>(cmp)],
                     std::to_string(with), place_text(runtime, word));
}

/// The Check of a wait in `call` for words of this PE. `describe` says which condition is not met. Costs nothing while
/// the wait is short: texts are made when they are printed.
template <typename Describe>
class WordMonitor final : public WaitMonitor {
 public:
  /// `core`: that the calling thread is, or nullptr.
  WordMonitor(const Runtime& runtime, const char* call, const shmemx_core_t* core, Describe describe)
      : WaitMonitor(runtime.job()), runtime_(runtime), call_(call), core_(core), describe_(std::move(describe)) {}
  /// Other PEs change the words: in a job that goes on when a PE dies, `deaths` end the wait, too.
  WordMonitor(const Runtime& runtime, const char* call, const shmemx_core_t* core, Describe describe,
              DeathWatch& deaths)
      : WordMonitor(runtime, call, core, std::move(describe)) {
    deaths_ = &deaths;
  }

  /// Without the call.
  [[nodiscard]] std::string explain(std::errc error) const override {
    return "the wait " + ending(error) + "; there is " + describe_();
  }

 private:
  std::errc look() override {
    trouble_ = deaths_ != nullptr ? deaths_->trouble(*Runtime::current()) : "";
    return trouble_.empty() ? std::errc{} : std::errc::owner_dead;
  }
  [[nodiscard]] std::string ending(std::errc error) const override {
    return error == std::errc::owner_dead ? "was given up: " + trouble_ : WaitMonitor::ending(error);
  }
  void warn(std::chrono::seconds waited) const override {
    const std::string text = fmt::format(
        "{}the wait has taken {} s; there is {}",
        core_ != nullptr ? said_by(*core_, call_) : fmt::format("shmem: PE {}: {}: ", runtime_.my_pe(), call_),
        waited.count(), describe_());
    log(LogLevel::kWarn, "%s", text.c_str());
  }

  const Runtime& runtime_;
  const char* call_;
  const shmemx_core_t* core_;
  Describe describe_;
  DeathWatch* deaths_ = nullptr;
  std::string trouble_;
};

/// Whose words a wait reads: this PE's, or those of another one of this node. Who changes a word wakes its PE only, so
/// that others look at it again and again.
enum class WordsOf { kThisPe, kAnotherPe };
constexpr std::chrono::milliseconds kNapElsewhere{1};

/// Where words are that another PE's address may name.
inline WordsOf words_at(const Job& job, const void* address, std::size_t bytes) {
  return job.other_heap_with(address, bytes) >= 0 ? WordsOf::kAnotherPe : WordsOf::kThisPe;
}

/// As wait_parked, or wait_polling by `policy`.
template <std::predicate Done, std::invocable Check>
std::errc wait_for_words(const Job& job, WordsOf whose, const WaitPolicy& policy, Done done, Check check) {
  return whose == WordsOf::kThisPe ? wait_parked(job, done, check) : wait_polling(policy, kNapElsewhere, done, check);
}

/// Waits until done(), which reads words that others change. On the host a failure ends the job. On a core
/// it returns false: this wait failed, with an error that the core keeps, or an earlier wait of this core did.
/// `describe` says which condition is not met; `needs`: see DeathWatch.
template <std::predicate Done, typename Describe>
bool wait_here(const Runtime& runtime, const char* call, Done done, Describe describe, DeathWatch::Needs needs = {},
               WordsOf whose = WordsOf::kThisPe) {
  const Job& job = runtime.job();
  shmemx_core_t* core = current_core();
  DeathWatch deaths(std::move(needs));
  WordMonitor monitor(runtime, call, core, std::move(describe), deaths);
  if (core == nullptr) {
    const std::errc error = wait_for_words(job, whose, job.policy, done, [&monitor] { return monitor(); });
    if (error != std::errc{}) {
      const std::errc code = error == std::errc::owner_dead ? error : std::errc::invalid_argument;
      end_job(runtime, call, Error{code, monitor.explain(error)});
    }
    return true;
  }
  if (core->error != std::errc{}) {
    return false;
  }
  const std::errc error =
      wait_for_words(job, whose, core->core.policy(), done, WatchedCheck(core->core.check(), monitor));
  if (error == std::errc{}) {
    return true;
  }
  core->keep(fail(error, said_by(*core, call) + monitor.explain(error)));
  return false;
}

}  // namespace shmem::api

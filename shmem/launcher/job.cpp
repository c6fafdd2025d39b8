// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/job.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/process_activity.hpp"
#include "base/size_text.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/launcher/mpir.hpp"
#include "shmem/launcher/node_part.hpp"
#include "shmem/launcher/streams.hpp"
#include "shmem/launcher/support_processes.hpp"

namespace shmem::launcher {

namespace {

using std::chrono::milliseconds;

/// How long PEs may wait for one that is gone but has not failed.
constexpr milliseconds kDesertion{1000};
/// How long oshrun waits, after a PE has reported an error, for the end of a PE that was killed before. The connections
/// of such a PE end before its process does.
constexpr milliseconds kCause{1000};

}  // namespace

Job::Job(Parts parts)
    : JobRunner(std::move(parts.tools)),
      parts_(std::move(parts)),
      programs_(tools_.options, parts_.files, parts_.binding, what_pes_share()),
      pes_(static_cast<std::size_t>(tools_.options.pes())),
      told_(pes_.size()),
      has_lifeline_(tools_.options.part.has_value()) {}

// ---- Starting

PePrograms::Common Job::what_pes_share() const {
  return {tools_.guard.group(),
          parts_.memory.fd(),
          parts_.ends.fd(),
          parts_.device ? parts_.device->address() : std::string(),
          tools_.output.is_for_terminal(),
          tools_.output.is_error_for_terminal(),
          tools_.output.open_files_before(),
          parts_.profiler ? &*parts_.profiler : nullptr,
          parts_.tool};
}

Result<pid_t> Job::start_pe(int pe) {
  auto ends = tools_.output.connect(pe);
  if (!ends) {
    return ends.error();
  }
  ChildProgram program = programs_.of(pe);
  if (pe == 0 && !tools_.options.part) {
    program.input = parts_.terminal ? parts_.terminal->pipe_end().get() : STDIN_FILENO;
  }
  if (parts_.tool.at_terminal() == pe) {
    program.input = STDIN_FILENO;
    program.has_terminal = true;
    program.group = 0;
  } else {
    program.output = ends->output.get();
    program.error = ends->error.get();
  }
  return start(program, tools_.signals.mask_before(), tools_.reports);
}

void Job::start_processes() {
  const int pes = tools_.options.pes();
  for (int pe = 0; pe < pes; ++pe) {
    const auto pid = start_pe(pe);
    if (!pid) {
      const int number = tools_.options.number(pe);
      say(fmt::format("cannot start PE {}: {}", number, pid.error().text));
      end(1, fmt::format("oshrun cannot start PE {}", number), Ending::kTerminated);
      break;
    }
    pes_[static_cast<std::size_t>(pe)] = Pe{{*pid, true}};
    if (tools_.options.report_bindings) {
      say(fmt::format("{} on {} is {}", name_of(pe), parts_.host, parts_.binding.text(pe, pes)));
    }
  }
  if (parts_.terminal) {
    parts_.terminal->pipe_end().reset();
  }
  publish_pes();
}

void Job::publish_pes() const {
  if (ending() != Ending::kNo) {
    return;
  }
  std::vector<MpirProcess> pes;
  pes.reserve(pes_.size());
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    pes.push_back({parts_.host, programs_.file_of(pe), pes_[static_cast<std::size_t>(pe)].pid});
  }
  if (tools_.options.part) {
    return write_to_starter(encode(pes));
  }
  publish_to_debuggers(std::move(pes));
  parts_.ends.release();
}

// ---- Watching

std::array<pollfd, 2> Job::inputs() {
  return {parts_.terminal ? parts_.terminal->wanted() : pollfd{-1, 0, 0},
          pollfd{has_lifeline_ ? STDIN_FILENO : -1, POLLIN, 0}};
}

void Job::take_inputs(const std::array<pollfd, 2>& ready) {
  if (ready[0].revents != 0) {
    parts_.terminal->move();
  }
  if (ready[1].revents != 0) {
    read_lifeline();
  }
}

void Job::look() {
  look_for_abort();
  look_for_reports();
  kill_left_out();
  look_for_deserters();
}

void Job::read_lifeline() {
  char byte = 0;
  const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
  if (got == 1 && byte == kTimeIsOver) {
    time_is_over();
  } else if (got == 1 && byte == kRelease) {
    parts_.ends.release();
  } else if (got == 1 && (byte == SIGUSR1 || byte == SIGUSR2)) {
    forward(byte);
  } else if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
    has_lifeline_ = false;
    reap(true);  // a PE that is dying may be why
    if (ending() == Ending::kNo || ending() == Ending::kTold) {
      end(1, "the oshrun that started this part of the job has ended it", Ending::kTerminated);
    }
  }
}

void Job::exec_failed(const ExecFailure& failure) {
  const std::string text = text_of(failure);
  say(text);
  const bool not_found = failure.step == ExecFailure::kExecute && failure.error == ENOENT;
  end(not_found ? kNotFound : kCannotExecute, "oshrun " + text, Ending::kTerminated);
}

std::string Job::text_of(const ExecFailure& failure) const {
  const int pe = failure.tag;
  const int number = tools_.options.number(pe);
  const std::string error = std::string(": ") + std::strerror(failure.error);
  switch (failure.step) {
    case ExecFailure::kPrepare:
      return fmt::format("cannot set up the process of PE {}{}", number, error);
    case ExecFailure::kBind:
      return fmt::format("cannot keep PE {} {}{}", number, parts_.binding.text(pe, tools_.options.pes()), error);
    case ExecFailure::kEnterFolder:
      return "cannot run " + programs_.file_of(pe) + " in " + programs_.folder_of(pe) + error;
    case ExecFailure::kExecute:
      break;
  }
  // The file itself was found before.
  const char* hint = failure.error == ENOENT ? " (the interpreter or loader that it names is missing)" : "";
  return "cannot run " + programs_.file_of(pe) + error + hint;
}

void Job::process_ended(std::size_t index, int wait_status) {
  const int pe = static_cast<int>(index);
  if (parts_.tool.at_terminal() == pe) {
    give_terminal(::getpgrp());
  }
  pe_ended(pe, wait_status);
}

void Job::pe_ended(int pe, int wait_status) {
  PeSlot& slot = parts_.memory.slot(pe);
  const bool left = slot.state.load(std::memory_order_acquire) == PeState::kLeft;  // pairs with LocalBootstrap::leave()
  const int status = exit_status(wait_status);
  const bool is_survived = !left && parts_.memory.header().survives.load(std::memory_order_acquire) != 0;
  if (ending() == Ending::kNo && is_survived) {
    pe_lost(pe, wait_status);
    return;
  }
  if (ending() == Ending::kNo && status != 0 && may_be_cause(pe, wait_status)) {
    const std::string text = end_text(pe, wait_status);
    failed_ = failed_.value_or(pe);
    if (left) {
      say(text);
      set_job_status(job_status().value_or(status));  // other PEs do not wait for it
    } else {
      cause_ = Cause{pe, text, WIFSIGNALED(wait_status)};
      end(status, text, Ending::kTold);
    }
  }
  someone_finished_ = someone_finished_ || (left && status == 0);
  pes_[static_cast<std::size_t>(pe)].deserted = status == 0 && !left && !is_survived;
  slot.exited.store(1 + static_cast<std::uint32_t>(wait_status),
                    std::memory_order_release);  // pairs with LocalBootstrap::missing()
}

void Job::pe_lost(int pe, int wait_status) {
  Pe& lost = pes_[static_cast<std::size_t>(pe)];
  lost_ = lost_.value_or(std::max(exit_status(wait_status), 1));
  parts_.memory.slot(pe).exited.store(1 + static_cast<std::uint32_t>(wait_status),
                                      std::memory_order_release);  // pairs with LocalBootstrap::end_of()
  const PeEnd reported = parts_.ends.of(pe);
  const std::string text = reported.kind == EndKind::kNone ? end_text(pe, wait_status) : text_of(pe, reported);
  told_[static_cast<std::size_t>(pe)] = true;
  if (lost.restarts >= tools_.options.restarts || !any_running()) {
    say(text + "; the others go on without it");
    say_calls(pe, reported);
    return;
  }
  say(fmt::format("{}; the others go on without it, and it starts again ({} of {})", text, lost.restarts + 1,
                  tools_.options.restarts));
  say_calls(pe, reported);
  restart(pe);
}

/// The new process joins the job by the same environment, and takes the place: LocalBootstrap::join().
void Job::restart(int pe) {
  while (tools_.output.move()) {  // what the PE has printed is still in the pipe
  }
  Pe& lost = pes_[static_cast<std::size_t>(pe)];
  parts_.ends.clear(pe);
  told_[static_cast<std::size_t>(pe)] = false;
  const auto pid = start_pe(pe);
  if (!pid) {
    say(fmt::format("cannot start PE {} again: {}", tools_.options.number(pe), pid.error().text));
    return;
  }
  const int restarts = lost.restarts + 1;
  lost = Pe{{*pid, true}};
  lost.restarts = restarts;
  publish_pes();
}

void Job::kill_left_out() {
  if (ending() != Ending::kNo) {
    return;
  }
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    Pe& one = pes_[static_cast<std::size_t>(pe)];
    // Relaxed: no other data depends on it.
    const pid_t left_out = -parts_.memory.slot(pe).owner.load(std::memory_order_relaxed);
    if (!one.running || one.is_killed || left_out <= 0 || one.restarts >= tools_.options.restarts) {
      continue;
    }
    // A process that the PE's program has started may be the PE: the program ends after it, as after any death. Its
    // number may be another process's by now, but hardly that of one of the job.
    if (left_out == one.pid || ::getpgid(left_out) == tools_.guard.group()) {
      one.is_killed = true;
      say(name_of(pe) + ": the other PEs have left it out; killing it to start it again");
      ::kill(left_out, SIGKILL);
    }
  }
}

void Job::other_ended(pid_t pid, int wait_status) {
  if (!parts_.device || pid != parts_.device->pid()) {
    return;  // a process that a PE left behind
  }
  say(fmt::format("the fake device (pid {}) {}; the job goes on with software barriers", parts_.device->pid(),
                  exit_text(wait_status)));
  parts_.device->note_end();
}

std::string Job::end_text(int pe, int wait_status) const {
  std::string text = full_name_of(pe) + " " + exit_text(wait_status);
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) {
    const std::string exceeded = memory_kills_.reason();
    text += exceeded.empty() ? "" : " by the kernel, because the job exceeded " + exceeded;
  }
  return text;
}

bool Job::may_be_consequence(const JobEnd& ended) const {
  return ended.pe != kLauncher && ended.status == EXIT_FAILURE;
}

bool Job::may_be_cause(int pe, int wait_status) const {
  const auto reported = parts_.memory.ended();
  if (!reported) {
    return true;
  }
  if (reported->pe == kLauncher) {
    return false;
  }
  const bool was_early = !reported_since_ || pes_[static_cast<std::size_t>(pe)].was_dying;
  if (WIFSIGNALED(wait_status)) {
    return was_early || may_be_consequence(*reported);
  }
  // A PE that ends by itself after the report of an error does so because of it, with the same status.
  return was_early && may_be_consequence(*reported) && pe != reported->pe &&
         exit_status(wait_status) != reported->status;
}

bool Job::may_have_another_cause(const JobEnd& ended) {
  if (!reported_since_) {
    reported_since_ = Clock::now();
    for (Pe& pe : pes_) {
      pe.was_dying = pe.running && base::is_dying(pe.pid);
    }
  }
  const auto waited = Clock::now() - *reported_since_;
  const bool any = may_be_consequence(ended) && waited < kCause;
  return std::ranges::any_of(pes_,
                             [&](const Pe& pe) { return pe.running && (any || (pe.was_dying && waited < kDying)); });
}

void Job::look_for_abort() {
  if (ending() != Ending::kNo) {
    return;
  }
  const auto ended = parts_.memory.ended();
  if (!ended || may_have_another_cause(*ended)) {
    return;
  }
  const bool by_pe = ended->pe >= 0 && ended->pe < tools_.options.pes();
  if (by_pe && ended->reason.starts_with(name_of(ended->pe))) {  // it has announced its exit
    failed_ = failed_.value_or(ended->pe);
    cause_ = Cause{ended->pe, full_name_of(ended->pe) + ended->reason.substr(name_of(ended->pe).size())};
  } else if (ended->status != 0) {
    cause_ =
        Cause{by_pe ? std::optional(ended->pe) : std::nullopt,
              fmt::format("{} ended the job with status {}{}", by_pe ? full_name_of(ended->pe) : std::string("a PE"),
                          ended->status, ended->reason.empty() ? "" : ": " + ended->reason)};
  }
  end(ended->status, ended->reason, Ending::kTold);
}

std::vector<int> Job::running_pes(bool joined) const {
  std::vector<int> found;
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    // Relaxed: no other data depends on it.
    const bool has_joined = parts_.memory.slot(pe).state.load(std::memory_order_relaxed) != PeState::kAbsent;
    if (pes_[static_cast<std::size_t>(pe)].running && has_joined == joined) {
      found.push_back(tools_.options.number(pe));
    }
  }
  return found;
}

void Job::time_is_over() {
  std::vector<int> running = running_pes(true);
  const std::vector<int> absent = running_pes(false);
  const bool uses_library = !running.empty();
  running.insert(running.end(), absent.begin(), absent.end());
  std::sort(running.begin(), running.end());
  const std::string late =
      uses_library && !absent.empty() ? "; not yet in shmem_init: " + pe_list(absent) : std::string();
  say("the job did not end within its --timeout; still running: " + pe_list(running) + late);
  // PEs that wait in a call of the library end by themselves, and name it.
  const bool can_tell = uses_library || tools_.options.part;
  end(kTimeoutStatus, "its time (oshrun --timeout) is over", can_tell ? Ending::kTold : Ending::kTerminated);
}

std::string Job::progress(std::chrono::seconds passed) {
  const auto joined = running_pes(true);
  const auto absent = running_pes(false);
  if (joined.empty() || absent.empty()) {
    return "";
  }
  return fmt::format("{} of {} called shmem_init after {} s; waiting for {}", joined.size(),
                     base::count(tools_.options.pes(), "PE") + (joined.size() == 1 ? " has" : " have"), passed.count(),
                     pe_list(absent));
}

void Job::look_for_deserters() {
  if (ending() != Ending::kNo) {
    return;
  }
  std::vector<int> deserters;
  std::vector<int> waiting;
  for (int pe = 0; pe < tools_.options.pes(); ++pe) {
    const Pe& one = pes_[static_cast<std::size_t>(pe)];
    if (one.deserted) {
      deserters.push_back(pe);
    }
    // Relaxed: no other data depends on it.
    const bool joined = parts_.memory.slot(pe).state.load(std::memory_order_relaxed) == PeState::kJoined;
    if (one.running && joined) {
      waiting.push_back(pe);
    }
  }
  if (deserters.empty() || waiting.empty()) {
    deserted_since_.reset();
    return;
  }
  if (!deserted_since_) {
    deserted_since_ = Clock::now();
  }
  if (Clock::now() - *deserted_since_ < kDesertion) {
    return;
  }
  const std::string text = full_name_of(deserters.front()) + " exited with status 0 without leaving the job " +
                           "(shmem_finalize), and " + pe_list(waiting) + (waiting.size() == 1 ? " is" : " are") +
                           " still in it";
  cause_ = Cause{deserters.front(), text};
  end(1, text, Ending::kTold);
}

std::string Job::name_of(int pe) const {
  return fmt::format("PE {} (pid {})", tools_.options.number(pe), pes_[static_cast<std::size_t>(pe)].pid);
}

}  // namespace shmem::launcher

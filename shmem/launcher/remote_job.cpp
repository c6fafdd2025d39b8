// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/remote_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/size_text.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/bootstrap/uid_session.hpp"
#include "shmem/config/config_file.hpp"

namespace shmem::launcher {
namespace {

using std::chrono::milliseconds;

/// The time of an oshrun on another node to end, beyond the grace that it gives its PEs twice, and the time that it
/// waits for those that are dying.
constexpr milliseconds kNodeLimit{5000};
/// PEs have limits of their own, which begin when they join.
constexpr std::chrono::hours kServerLimit{24 * 365};
constexpr int kRshFailure = 255;

std::string hex(const Secret& secret) {
  std::string text;
  for (const auto byte : secret) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

/// The server of the job, and the variables by which the PEs find it.
struct Served {
  std::unique_ptr<UidServer> server;
  std::vector<std::string> variables;
};

Result<Served> serve(int pes) {
  const auto options = process_options();
  if (!options) {
    return options.error();
  }
  auto listener = open_listener({.session = options->uid_session_id, .interface = options->uid_sock_ifname});
  if (!listener) {
    return listener.error();
  }
  const std::string place = listener->id.place.text();
  const std::string secret = hex(listener->id.secret);
  const auto id = shared_id({.session = place, .size = pes, .shared_secret = secret});
  if (!id) {
    return id.error();
  }
  auto server = UidServer::start(std::move(listener->socket), {.secret = id->secret,
                                                               .size = pes,
                                                               .server = kLauncher,
                                                               .limit = kServerLimit,
                                                               .place = place,
                                                               .how = listener->how});
  if (!server) {
    return server.error();
  }
  return Served{*std::move(server),
                {"SHMEM_UID_SESSION_ID=" + place, fmt::format("SHMEM_UID_SIZE={}", pes), "SHMEM_UID_SECRET=" + secret,
                 std::string(kJobServedVariable) + "=1"}};
}

Result<std::string> find_rsh(const std::vector<std::string>& rsh) {
  const char* path = std::getenv("PATH");
  auto found = find_program(rsh.front(), path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  if (!found) {
    return fail(found.error().code, found.error().text + " (--rsh or SHMEM_RSH names another program)");
  }
  return found;
}

Result<std::string> own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return fail(std::errc{error.value()}, "cannot find the path of this oshrun: /proc/self/exe: " + error.message());
  }
  return path.string();
}

/// Of this process, which may itself be a PE, for the oshrun of this node.
std::vector<std::string> own_environment() {
  std::vector<std::string> entries = Environment().entries();
  std::erase_if(entries, [](const std::string& entry) { return entry.starts_with("OSHRUN_"); });
  return entries;
}

}  // namespace

std::string NodeMark::take_behind(std::string_view bytes, std::string* behind) {
  if (behind == nullptr || is_complete_) {
    return std::string(bytes);
  }
  behind->append(bytes);
  const auto end = end_.empty() ? std::string::npos : behind->find(end_);
  if (end == std::string::npos) {
    return {};
  }
  is_complete_ = true;
  std::string others = behind->substr(end + end_.size());
  behind->resize(end + end_.size());
  return others;
}

std::string NodeMark::feed(std::string_view bytes, std::string* behind) {
  if (found_) {
    return take_behind(bytes, behind);
  }
  waiting_ += bytes;
  const auto place = waiting_.find(mark_);
  found_ = place != std::string::npos;
  if (found_) {
    std::string others = waiting_.substr(0, place);
    others += take_behind(std::string_view(waiting_).substr(place + mark_.size()), behind);
    waiting_.clear();
    return others;
  }
  // Its first byte occurs once in it.
  auto begin = std::min(waiting_.rfind(mark_.front()), waiting_.size());
  begin = mark_.starts_with(std::string_view(waiting_).substr(begin)) ? begin : waiting_.size();
  std::string others = waiting_.substr(0, begin);
  waiting_.erase(0, begin);
  return others;
}

Result<std::unique_ptr<RemoteJob>> RemoteJob::prepare(Options options) {
  auto self = own_path();
  if (!self) {
    return self.error();
  }
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) {
    return fail(std::errc{error.value()}, "cannot find the working folder: " + error.message());
  }
  auto rsh = find_rsh(options.rsh);
  if (!rsh) {
    return rsh.error();
  }
  auto tools = Tools::make(std::move(options), [](const Options& all) {
    return Output::open_for_nodes(static_cast<int>(all.nodes.size()));
  });
  if (!tools) {
    return tools.error();
  }
  // Last: it is a thread, and no process is made by fork() while threads start.
  auto served = serve(tools->options.pes());
  if (!served) {
    return served.error();
  }
  std::vector<NodeVariable> variables;
  for (const auto& entries : {environment_for_nodes(), served->variables}) {
    for (const std::string& entry : entries) {
      variables.push_back({-1, entry});
    }
  }
  if (tools->output.is_for_terminal()) {
    variables.push_back({-1, std::string(kJobLinesVariable) + "=1"});
  }
  return std::unique_ptr<RemoteJob>(new RemoteJob(
      *std::move(tools), {*std::move(self), *std::move(rsh), folder, std::move(variables), std::move(served->server)}));
}

RemoteJob::RemoteJob(Tools tools, Parts parts) : JobRunner(std::move(tools)), parts_(std::move(parts)) {
  for (const NodePes& place : tools_.options.nodes) {
    nodes_.emplace_back().place = place;
  }
  tools_.output.filter_output([this](int index, std::string_view bytes) {
    Node& node = nodes_[static_cast<std::size_t>(index)];
    const std::string text = node.pes.feed(node.ready.feed(bytes), &node.processes);
    return tools_.options.profile.empty() ? text : node.profile.feed(text, &node.counts);
  });
}

// ---- Starting

void RemoteJob::start_processes() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (auto started = start(i); !started) {
      say(fmt::format("cannot start {}: {}", name_of(nodes_[i]), started.error().text));
      return end(1, "", Ending::kTerminated);
    }
  }
}

Result<void> RemoteJob::start(std::size_t index) {
  Node& node = nodes_[index];
  auto ends = tools_.output.connect(static_cast<int>(index));
  if (!ends) {
    return ends.error();
  }
  auto input = give_input(node.place, node.input);
  if (!input) {
    return input.error();
  }
  ChildProgram program = program_for(node.place);
  program.tag = static_cast<int>(index);
  program.group = tools_.guard.group();
  program.input = input->get();
  program.output = ends->output.get();
  program.error = ends->error.get();
  program.open_files = tools_.output.open_files_before();
  const auto pid = launcher::start(program, tools_.signals.mask_before(), tools_.reports);
  if (!pid) {
    return pid.error();
  }
  node.pid = *pid;
  node.running = true;
  return {};
}

ChildProgram RemoteJob::program_for(const NodePes& place) const {
  std::vector<std::string> command = part_arguments(tools_.options, place, parts_.folder);
  command.insert(command.begin(), parts_.self);
  ChildProgram program;
  if (is_this_machine(place.host)) {
    program.file = parts_.self;
    program.arguments = std::move(command);
    program.environment = own_environment();
  } else {
    program.file = parts_.rsh;
    program.arguments = tools_.options.rsh;
    program.arguments.insert(program.arguments.end(), {place.host, "exec " + quoted(command)});
    program.environment = Environment().entries();
  }
  return program;
}

Result<base::UniqueFd> RemoteJob::give_input(const NodePes& place, base::UniqueFd& lifeline) const {
  std::vector<NodeVariable> variables = parts_.variables;
  for (NodeVariable& own : part_variables(tools_.options, place)) {
    variables.push_back(std::move(own));
  }
  const std::string bytes = encode(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno(errno, "cannot make a pipe (see ulimit -n)");
  }
  base::UniqueFd read(ends[0]);
  lifeline.reset(ends[1]);
  // All of it at once, so that a node that does not read keeps no other node waiting.
  ::fcntl(lifeline.get(), F_SETPIPE_SZ, static_cast<int>(bytes.size()) + 4096);
  if (::fcntl(lifeline.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail_errno(errno, "cannot set up a pipe");
  }
  if (::write(lifeline.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return fail(
        std::errc::argument_list_too_long,
        fmt::format("the environment, {} bytes, does not fit into a pipe (/proc/sys/fs/pipe-max-size)", bytes.size()));
  }
  return read;
}

void RemoteJob::publish_pes() {
  const auto is_known = [](const Node& node) { return node.pes.is_complete(); };
  if (is_published_ || ending() != Ending::kNo || !std::ranges::all_of(nodes_, is_known)) {
    return;
  }
  is_published_ = true;
  std::vector<MpirProcess> pes;
  for (const Node& node : nodes_) {
    std::ranges::move(decode_pes(node.processes, node.place.host), std::back_inserter(pes));
  }
  publish_to_debuggers(std::move(pes));
  if (tools_.options.hold) {
    tell_nodes(kRelease);
  }
}

// ---- Watching

void RemoteJob::tell_nodes(char byte) {
  for (const Node& node : nodes_) {
    if (node.running && node.input) {
      // A node that has ended meanwhile has no reader.
      [[maybe_unused]] const ssize_t written = ::write(node.input.get(), &byte, 1);
    }
  }
}

void RemoteJob::exec_failed(const ExecFailure& failure) {
  const Node& node = nodes_[static_cast<std::size_t>(failure.tag)];
  say(fmt::format("cannot start {}: {}", name_of(node), std::strerror(failure.error)));
  end(1, "", Ending::kTerminated);
}

void RemoteJob::process_ended(std::size_t index, int wait_status) {
  tools_.output.move();  // the mark that it was ready may still be in the pipe
  nodes_[index].input.reset();
  node_ended(nodes_[index], wait_status);
}

void RemoteJob::node_ended(const Node& node, int wait_status) {
  const int status = exit_status(wait_status);
  if (!node.ready.found() && ending() == Ending::kNo) {
    const bool is_here = is_this_machine(node.place.host);
    const std::string hint = status == kNotFound
                                 ? fmt::format("is {} there? oshrun has the same path on all nodes", parts_.self)
                                 : fmt::format("does \"{} {} true\" work? (--rsh or SHMEM_RSH names another program)",
                                               fmt::join(tools_.options.rsh, " "), node.place.host);
    say(fmt::format("cannot start {}: {} {}{}", name_of(node), is_here ? "oshrun" : tools_.options.rsh.front(),
                    exit_text(wait_status), is_here ? "" : "; " + hint));
    return end(status == kNotFound ? kNotFound : 1, "", Ending::kTerminated);
  }
  if (status == 0) {
    return;
  }
  if (ending() == Ending::kNo && (status == kRshFailure || WIFSIGNALED(wait_status))) {
    say(fmt::format("{} is gone: {} {}", name_of(node),
                    is_this_machine(node.place.host) ? "oshrun" : tools_.options.rsh.front(), exit_text(wait_status)));
  }
  // A PE that was killed is probably the cause, and that PEs of other nodes failed by themselves the consequence. It
  // may be long dying: its oshrun waits for it when it is told to end.
  const bool is_told = ending() == Ending::kTold || (ending() == Ending::kTerminated && !WIFSIGNALED(wait_status));
  if (status > 128 && is_told && job_status() < 128 && job_status() != kTimeoutStatus) {
    set_job_status(status);
  }
  if (ending() == Ending::kNo) {
    end(status, "", Ending::kTold);
  }
}

void RemoteJob::time_is_over() {
  std::string names;
  for (const Node& node : nodes_) {
    if (node.running) {
      names += (names.empty() ? "" : ", ") + name_of(node);
    }
  }
  say("the job did not end within its --timeout; still running on " + names);
  parts_.server->abort(kTimeoutStatus, "its time (oshrun --timeout) is over");
  tell_nodes(kTimeIsOver);
  end(kTimeoutStatus, "", Ending::kTold);
}

std::string RemoteJob::progress(std::chrono::seconds passed) {
  std::string names;
  std::size_t ready = 0;
  for (const Node& node : nodes_) {
    ready += node.ready.found() ? 1 : 0;
    names += node.ready.found() ? "" : (names.empty() ? "" : ", ") + name_of(node);
  }
  if (names.empty()) {
    return "";
  }
  return fmt::format("{} of {} {} started after {} s; waiting for {}", ready, base::count(nodes_.size(), "node"),
                     ready == 1 ? "has" : "have", passed.count(), names);
}

// ---- Ending

std::chrono::milliseconds RemoteJob::begin_stage(Ending ending, int /*status*/, const std::string& /*reason*/) {
  if (ending == Ending::kTerminated) {  // the nodes' oshruns end their PEs
    for (Node& node : nodes_) {
      node.input.reset();
    }
    return 2 * tools_.options.grace + kDying + kNodeLimit;
  }
  if (ending == Ending::kKilled) {
    tools_.guard.signal_group(SIGKILL);
    return kNodeLimit;
  }
  return tools_.options.grace;
}

int RemoteJob::finish() {
  end_leftovers({tools_.guard.group()}, tools_.options.grace);
  finish_output();
  report_profile();
  parts_.server->stop();
  return job_status().value_or(0);
}

void RemoteJob::report_profile() {
  if (tools_.options.profile.empty()) {
    return;
  }
  std::vector<PeCounts> counts;
  for (const Node& node : nodes_) {
    for (PeCounts& pe : decode_counts(node.counts)) {
      counts.push_back(std::move(pe));
    }
  }
  say(write_report(counts, tools_.options.pes(), tools_.options.profile));
  drain_output();
}

std::string RemoteJob::name_of(const Node& node) {
  const int first = node.place.first;
  return node.place.pes == 1 ? fmt::format("{} (PE {})", node.place.host, first)
                             : fmt::format("{} (PEs {}-{})", node.place.host, first, first + node.place.pes - 1);
}

}  // namespace shmem::launcher

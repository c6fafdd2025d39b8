// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/barrier_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/fd.hpp"
#include "shmem/config/tuning.hpp"
#include "shmem/layout/metadata.hpp"

namespace shmem {
namespace {

constexpr const char* kFormat = "libshmem-measured-barriers 1";

struct Line {
  std::string place;
  std::size_t index = 0;
  MeasuredBarrier::Known known{};
  std::int64_t when = 0;
};

std::optional<Line> parse(const std::string& text) {
  std::istringstream words(text);
  Line line;
  std::string algorithm;
  std::int64_t each = 0;
  words >> line.place >> line.index >> algorithm >> each >> line.when;
  const auto found = find_algorithm(algorithm);
  if (!words || !found || line.index >= kMeasuredBarriers || each < 0) {
    return std::nullopt;
  }
  line.known = {*found, BarrierTrials::Duration(each)};
  return line;
}

/// The lines of the file that are not too old, in its order.
std::vector<Line> read_lines(const std::string& file, std::int64_t now) {
  const auto text = read_text(file);
  if (!text || text->rfind(kFormat, 0) != 0) {
    return {};
  }
  std::vector<Line> lines;
  std::istringstream stream(*text);
  for (std::string each; std::getline(stream, each);) {
    const auto line = parse(each);
    if (line && line->when <= now && now - line->when < BarrierCache::kSecondsKept) {
      lines.push_back(*line);
    }
  }
  return lines;
}

std::string text_of(const std::vector<Line>& lines) {
  std::string text = fmt::format("{}\n", kFormat);
  for (const Line& line : lines) {
    text += fmt::format("{} {} {} {} {}\n", line.place, line.index, name_of(line.known.algorithm),
                        line.known.each.count(), line.when);
  }
  return text;
}

/// Readers see the old text or the new one.
void replace(const std::string& file, const std::string& text) {
  const std::string next = fmt::format("{}.{}", file, ::getpid());
  const base::UniqueFd fd(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return;
  }
  const bool written = ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(next.c_str(), file.c_str()) != 0) {
    ::unlink(next.c_str());
  }
}

/// The path in the user's folder for caches, which is made if it does not exist; "" if that is impossible. A program
/// that runs with more rights than its user has uses no folder that the user names.
std::string path_of_user() {
  std::string folder;
  if (const char* named = ::secure_getenv("XDG_CACHE_HOME"); named != nullptr && *named == '/') {
    folder = named;
  } else if (const char* home = ::secure_getenv("HOME"); home != nullptr && *home == '/') {
    folder = std::string(home) + "/.cache";
  } else {
    return "";
  }
  ::mkdir(folder.c_str(), 0700);
  folder += "/libshmem";
  ::mkdir(folder.c_str(), 0700);
  return ::access(folder.c_str(), W_OK) == 0 ? folder + "/barriers" : "";
}

/// Another word after each start of the machine; the same in all of its containers.
std::string start_of_machine() {
  auto id = read_text("/proc/sys/kernel/random/boot_id");
  if (!id) {
    return "";
  }
  id->erase(id->find_last_not_of('\n') + 1);
  return *id;
}

}  // namespace

BarrierCache BarrierCache::of_user(int pes, int processors) {
  const std::string start = start_of_machine();
  return {start.empty() ? "" : path_of_user(), fmt::format("{}:{}:{}", start, pes, processors)};
}

void BarrierCache::load(std::span<std::atomic<std::uint64_t>> words, std::int64_t now) const {
  if (file_.empty()) {
    return;
  }
  for (const Line& line : read_lines(file_, now)) {
    if (line.place == place_ && line.index < words.size()) {
      MeasuredBarrier(words[line.index]).store(line.known);
    }
  }
}

void BarrierCache::keep(std::size_t index, const MeasuredBarrier::Known& known, std::int64_t now) const {
  if (file_.empty()) {
    return;
  }
  std::vector<Line> lines = read_lines(file_, now);
  std::erase_if(lines, [&](const Line& line) { return line.place == place_ && line.index == index; });
  lines.push_back({place_, index, known, now});
  replace(file_, text_of(lines));
}

std::int64_t BarrierCache::seconds_up() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

}  // namespace shmem

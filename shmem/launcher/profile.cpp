// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/profile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "shmem/launcher/child.hpp"

namespace shmem::launcher {
namespace {

/// Where the library is from the folder of oshrun: in a build tree, and installed.
constexpr std::string_view kWays[] = {"/../lib/libshmem/", "/" SHMEM_PROFILE_WAY "/"};

Result<std::string> find_library() {
  const std::string folder = own_folder();
  for (const std::string_view way : kWays) {
    std::string path = folder + std::string(way) + profile::kLibrary;
    if (::access(path.c_str(), R_OK) == 0) {
      return path;
    }
  }
  return fail(std::errc::no_such_file_or_directory,
              fmt::format("--profile: there is no {} in {}{}; install libshmem-tools as a whole", profile::kLibrary,
                          folder, kWays[1]));
}

// Relaxed loads: each number stands for itself.
std::uint64_t value(const std::atomic<std::uint64_t>& number) {
  return number.load(std::memory_order_relaxed);
}

}  // namespace

Profiler::Profiler(profile::Memory memory, std::string library)
    : memory_(std::move(memory)),
      library_(std::move(library)),
      ticks_(memory_.ticks()),
      nanoseconds_(profile::nanoseconds()) {}

Result<Profiler> Profiler::create(int first, int count, int total) {
  auto library = find_library();
  if (!library) {
    return library.error();
  }
  auto memory = profile::Memory::create(first, count, total);
  if (!memory) {
    return memory.error();
  }
  return Profiler(std::move(*memory), std::move(*library));
}

std::string Profiler::preloaded(const char* before) const {
  return before == nullptr || *before == '\0' ? library_ : std::string(before) + ":" + library_;
}

std::vector<PeCounts> Profiler::counts(const std::string& host) const {
  const std::uint64_t now = memory_.ticks();
  const auto passed = static_cast<double>(profile::nanoseconds() - nanoseconds_);
  const double scale = now > ticks_ ? passed / static_cast<double>(now - ticks_) : 1;
  const auto time = [scale](std::uint64_t ticks) {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) * scale);
  };
  std::vector<PeCounts> all;
  for (int i = 0; i < memory_.header().count; ++i) {
    const profile::PeTable& table = memory_.table(i);
    PeCounts pe;
    pe.pe = memory_.header().first + i;
    pe.host = host;
    // The PEs have ended, but processes that they have started may run on: pairs with the store in make_line().
    const auto lines = std::min<std::size_t>(table.lines.load(std::memory_order_acquire), profile::kMostLines);
    for (std::size_t j = 0; j < lines; ++j) {
      const profile::Line& line = table.line[j];
      const std::string name(line.name.data(), ::strnlen(line.name.data(), line.name.size()));
      pe.routines.push_back({name, line.kind, value(line.main.calls) + value(line.others.calls),
                             value(line.main.bytes) + value(line.others.bytes),
                             time(value(line.main.ticks) + value(line.others.ticks))});
    }
    const std::uint64_t started = value(table.started);
    const std::uint64_t finished = value(table.finished);
    pe.nanoseconds = started == 0 ? 0 : time((finished != 0 ? finished : now) - started);
    const std::uint32_t present = table.present.load(std::memory_order_relaxed);
    if (present > 0 && present <= lines) {
      pe.present = pe.routines[present - 1].name;
      pe.present_nanoseconds = time(now - std::min(now, value(table.since)));
    }
    const profile::Target* targets = memory_.targets(i);
    for (int other = 0; other < memory_.header().total; ++other) {
      const profile::Target& target = targets[other];
      const PairCounts pair{other, value(target.main.put) + value(target.others.put),
                            value(target.main.got) + value(target.others.got)};
      if (pair.put != 0 || pair.got != 0) {
        pe.pairs.push_back(pair);
      }
    }
    all.push_back(std::move(pe));
  }
  return all;
}

std::string encode_counts(const std::vector<PeCounts>& pes) {
  std::string text;
  for (const PeCounts& pe : pes) {
    text += fmt::format("pe {} {} {} {} {}\n", pe.pe, pe.host.empty() ? "-" : pe.host, pe.nanoseconds,
                        pe.present.empty() ? "-" : pe.present, pe.present_nanoseconds);
    for (const RoutineCounts& one : pe.routines) {
      text += fmt::format("call {} {} {} {} {}\n", one.name, static_cast<unsigned>(one.kind), one.calls, one.bytes,
                          one.nanoseconds);
    }
    for (const PairCounts& pair : pe.pairs) {
      text += fmt::format("pair {} {} {}\n", pair.pe, pair.put, pair.got);
    }
  }
  return text;
}

std::vector<PeCounts> decode_counts(const std::string& text) {
  std::vector<PeCounts> pes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (PeCounts pe;
        what == "pe" && words >> pe.pe >> pe.host >> pe.nanoseconds >> pe.present >> pe.present_nanoseconds) {
      pe.present = pe.present == "-" ? "" : pe.present;
      pes.push_back(std::move(pe));
    } else if (pes.empty()) {
      continue;
    }
    unsigned kind = 0;
    if (RoutineCounts one; what == "call" && words >> one.name >> kind >> one.calls >> one.bytes >> one.nanoseconds &&
                           kind < profile::kKinds) {
      one.kind = static_cast<profile::Kind>(kind);
      pes.back().routines.push_back(std::move(one));
    }
    if (PairCounts pair; what == "pair" && words >> pair.pe >> pair.put >> pair.got) {
      pes.back().pairs.push_back(pair);
    }
  }
  return pes;
}

}  // namespace shmem::launcher

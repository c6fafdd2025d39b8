// SPDX-License-Identifier: Apache-2.0
// The report of oshrun --profile.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "shmem/launcher/profile.hpp"

#include "base/size_text.hpp"

namespace shmem::launcher {
namespace {

using profile::Kind;
using profile::kKinds;

/// In the order of Kind.
constexpr std::array<const char*, kKinds> kKindNames = {"puts",        "gets",  "atomics", "order", "barriers",
                                                        "collectives", "waits", "memory",  "other"};
/// With more PEs, the text names the pairs with the most bytes, and a cell of the picture stands for several PEs.
constexpr int kMostInText = 16;
constexpr std::size_t kMostPairs = 20;
constexpr int kMostCells = 128;

std::string time_text(std::uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (value < 1e3) {
    return fmt::format("{} ns", nanoseconds);
  }
  if (value < 1e6) {
    return fmt::format("{:.2f} us", value / 1e3);
  }
  return value < 1e9 ? fmt::format("{:.2f} ms", value / 1e6) : fmt::format("{:.3f} s", value / 1e9);
}

struct Pair {
  int from, to;
  std::uint64_t bytes;
};

/// By (from, to): the bytes that went from the memory of one PE to that of another.
std::map<std::pair<int, int>, std::uint64_t> matrix_of(const std::vector<PeCounts>& pes, int total) {
  std::map<std::pair<int, int>, std::uint64_t> matrix;
  for (const PeCounts& pe : pes) {
    for (const PairCounts& pair : pe.pairs) {
      if (pair.pe < 0 || pair.pe >= total) {
        continue;
      }
      if (pair.put != 0) {
        matrix[{pe.pe, pair.pe}] += pair.put;
      }
      if (pair.got != 0) {
        matrix[{pair.pe, pe.pe}] += pair.got;
      }
    }
  }
  return matrix;
}

void add_routines(std::string& text, const std::vector<PeCounts>& pes) {
  std::map<std::string, RoutineCounts> sums;
  for (const PeCounts& pe : pes) {
    for (const RoutineCounts& one : pe.routines) {
      RoutineCounts& sum = sums[one.name];
      sum.name = one.name;
      sum.calls += one.calls;
      sum.bytes += one.bytes;
      sum.nanoseconds += one.nanoseconds;
    }
  }
  std::vector<RoutineCounts> sorted;
  for (auto& [name, sum] : sums) {
    sorted.push_back(sum);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.nanoseconds > b.nanoseconds; });
  text += "\nCalls of all PEs, those that took the most time first\n";
  text += fmt::format("{:<40} {:>12} {:>16} {:>12} {:>12}\n", "routine", "calls", "bytes", "time", "each");
  for (const RoutineCounts& one : sorted) {
    text += fmt::format("{:<40} {:>12} {:>16} {:>12} {:>12}\n", one.name, one.calls, one.bytes,
                        time_text(one.nanoseconds), time_text(one.nanoseconds / std::max<std::uint64_t>(one.calls, 1)));
  }
}

void add_pes(std::string& text, const std::vector<PeCounts>& pes) {
  text += "\nTime of each PE from shmem_init to shmem_finalize, and the percentage of it in calls\n";
  text += fmt::format("{:>5} {:<16} {:>12}", "PE", "node", "time");
  for (const char* name : kKindNames) {
    text += fmt::format(" {:>11}", name);
  }
  text += '\n';
  for (const PeCounts& pe : pes) {
    std::array<std::uint64_t, kKinds> sums{};
    for (const RoutineCounts& one : pe.routines) {
      sums[static_cast<std::size_t>(one.kind)] += one.nanoseconds;
    }
    if (!pe.present.empty()) {
      for (const RoutineCounts& one : pe.routines) {
        sums[static_cast<std::size_t>(one.kind)] += one.name == pe.present ? pe.present_nanoseconds : 0;
      }
    }
    text += fmt::format("{:>5} {:<16} {:>12}", pe.pe, pe.host, time_text(pe.nanoseconds));
    for (const std::uint64_t sum : sums) {
      const double share =
          pe.nanoseconds == 0 ? 0 : 100 * static_cast<double>(sum) / static_cast<double>(pe.nanoseconds);
      text += fmt::format(" {:>11.1f}", share);
    }
    text += '\n';
  }
  for (const PeCounts& pe : pes) {
    if (!pe.present.empty()) {
      text += fmt::format("PE {} ended in {}, in which it had been for {}.\n", pe.pe, pe.present,
                          time_text(pe.present_nanoseconds));
    }
  }
}

void add_matrix(std::string& text, const std::vector<PeCounts>& pes, int total) {
  const auto matrix = matrix_of(pes, total);
  text += "\nBytes from the memory of a PE to that of another one, by puts, gets and atomics";
  if (total <= kMostInText) {
    text += fmt::format("\n{:>9}", "from \\ to");
    for (int to = 0; to < total; ++to) {
      text += fmt::format(" {:>12}", to);
    }
    for (int from = 0; from < total; ++from) {
      text += fmt::format("\n{:>9}", from);
      for (int to = 0; to < total; ++to) {
        const auto found = matrix.find({from, to});
        text += fmt::format(" {:>12}", found == matrix.end() ? 0 : found->second);
      }
    }
    text += '\n';
    return;
  }
  std::vector<Pair> pairs;
  for (const auto& [pair, bytes] : matrix) {
    pairs.push_back({pair.first, pair.second, bytes});
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.bytes > b.bytes; });
  text += fmt::format(": {} pairs; those with the most\n{:>9} {:>9} {:>16}\n", pairs.size(), "from", "to", "bytes");
  pairs.resize(std::min(pairs.size(), kMostPairs));
  for (const Pair& pair : pairs) {
    text += fmt::format("{:>9} {:>9} {:>16}\n", pair.from, pair.to, pair.bytes);
  }
}

/// From white (none) to dark blue (the most), by the logarithm.
std::string colour(std::uint64_t bytes, std::uint64_t most) {
  if (bytes == 0) {
    return "#ffffff";
  }
  const double share = most <= 1 ? 1 : std::log(static_cast<double>(bytes)) / std::log(static_cast<double>(most));
  const auto mix = [share](int light, int dark) {
    return static_cast<int>(std::lround(light + (dark - light) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(222, 8), mix(235, 48), mix(247, 107));
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

}  // namespace

std::string report_text(const std::vector<PeCounts>& pes, int total) {
  std::set<std::string> hosts;
  std::uint64_t longest = 0;
  for (const PeCounts& pe : pes) {
    hosts.insert(pe.host);
    longest = std::max(longest, pe.nanoseconds);
  }
  std::string text = fmt::format("oshrun --profile: {} on {}, {}\n", base::count(total, "PE"),
                                 base::count(hosts.size(), "node"), time_text(longest));
  if (static_cast<int>(pes.size()) < total) {
    text += fmt::format("The counts of {} are missing: their nodes are gone.\n",
                        base::count(total - static_cast<int>(pes.size()), "PE"));
  }
  if (longest == 0) {
    return text + "No PE has called shmem_init: is the program linked with libshmem, as a shared library?\n";
  }
  add_routines(text, pes);
  add_pes(text, pes);
  add_matrix(text, pes, total);
  return text;
}

std::string report_picture(const std::vector<PeCounts>& pes, int total) {
  const int each = (total + kMostCells - 1) / kMostCells;  // PEs of a cell
  const int cells = (total + each - 1) / each;
  std::map<std::pair<int, int>, std::uint64_t> sums;
  for (const auto& [pair, bytes] : matrix_of(pes, total)) {
    sums[{pair.first / each, pair.second / each}] += bytes;
  }
  std::uint64_t most = 0;
  for (const auto& [cell, bytes] : sums) {
    most = std::max(most, bytes);
  }
  constexpr int kSide = 640;
  constexpr int kLeft = 70;
  constexpr int kTop = 90;
  const double side = static_cast<double>(kSide) / cells;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"28\" font-size=\"16\">Bytes between PEs: puts, gets and atomics</text>\n"
      "<text x=\"{2}\" y=\"48\">from the PE of the row to that of the column; darkest: {3} bytes{4}</text>\n"
      "<rect x=\"{2}\" y=\"{5}\" width=\"{6}\" height=\"{6}\" fill=\"none\" stroke=\"black\"/>\n",
      kLeft + kSide + 30, kTop + kSide + 30, kLeft, most, each == 1 ? "" : fmt::format("; a cell is {} PEs", each),
      kTop, kSide);
  for (const auto& [cell, bytes] : sums) {
    const auto name = [each, total](int index) {
      return each == 1 ? fmt::format("PE {}", index)
                       : fmt::format("PEs {}-{}", index * each, std::min(total, (index + 1) * each) - 1);
    };
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"><title>{} to {}: {} "
        "bytes</title></rect>\n",
        kLeft + cell.second * side, kTop + cell.first * side, side, side, colour(bytes, most), name(cell.first),
        name(cell.second), bytes);
  }
  const int step = std::max(1, (cells + 15) / 16);
  for (int i = 0; i < cells; i += step) {
    const double middle = (i + 0.5) * side;
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft + middle, kTop - 8, i * each, kLeft - 8, kTop + middle + 4, i * each);
  }
  return svg + "</svg>\n";
}

std::string write_report(const std::vector<PeCounts>& pes, int total, const std::string& prefix) {
  const std::string text = prefix + ".txt";
  const std::string picture = prefix + ".svg";
  for (const auto& [path, content] :
       {std::pair(text, report_text(pes, total)), std::pair(picture, report_picture(pes, total))}) {
    if (!write(path, content)) {
      return fmt::format("--profile: cannot write {}: {}", path, std::strerror(errno));
    }
  }
  return fmt::format("profile of {}: {} and {}", base::count(total, "PE"), text, picture);
}

}  // namespace shmem::launcher

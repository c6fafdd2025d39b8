// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/parameters.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "shmem/table_text.hpp"

namespace scale {
namespace {

constexpr const char* kFormat = "bench-scale-parameters 1";
constexpr const char* kSkewKey = "skew_distribution";
constexpr double kMostTime = 1e9;  // a second

struct Spec {
  const char* key;
  const char* unit;
  double Parameters::*value;
  double least;
  double most;
  const char* meaning;
};

constexpr auto kSpecs = std::to_array<Spec>({
    {"line_round_trip", "ns", &Parameters::line_round_trip, 0, kMostTime,
     "a cache line to another core and back; half of it from a store until a core that spins on the word sees it"},
    {"line_share", "ns", &Parameters::line_share, 0, kMostTime,
     "each further core that spins on the same word sees it so much later"},
    {"line_read", "ns", &Parameters::line_read, 0, kMostTime,
     "each further one of several words that have been stored already: the reads overlap"},
    {"release_store", "ns", &Parameters::release_store, 0, kMostTime,
     "what a core spends to publish a word in its own cache, with the look for sleepers"},
    {"doorbell_store", "ns", &Parameters::doorbell_store, 0, kMostTime,
     "what a core spends on the posted store to the switch"},
    {"switch_round_trip", "ns", &Parameters::switch_round_trip, 0, kMostTime,
     "from the last doorbell, as it leaves its core, until the release flags can be read"},
    {"switch_arrival_gap", "ns", &Parameters::switch_arrival_gap, 0, kMostTime,
     "between two arrivals that the switch takes of one group; 0: of all ports at once"},
    {"switch_release_gap", "ns", &Parameters::switch_release_gap, 0, kMostTime,
     "between two flags that the switch stores; 0: to all ports at once"},
    {"ports_per_switch", "count", &Parameters::ports_per_switch, 2, 65536, "members of a group at most"},
    {"pes_per_node", "count", &Parameters::pes_per_node, 1, 4096,
     "PEs that share memory, a port of the switch and a network interface, in what is said of nodes"},
    {"network_latency", "ns", &Parameters::network_latency, 0, kMostTime,
     "LogGP L: a message from interface to memory"},
    {"network_overhead", "ns", &Parameters::network_overhead, 0, kMostTime,
     "LogGP o: what a core spends to send a message, and again to see that one has come"},
    {"network_gap", "ns", &Parameters::network_gap, 0, kMostTime,
     "LogGP g: between two messages through one interface, each way"},
    {"network_byte", "ns", &Parameters::network_byte, 0, kMostTime, "LogGP G: for each byte of a message"},
    {"message_bytes", "bytes", &Parameters::message_bytes, 1, 1e6, "a signal with its headers"},
    {"mpi_overhead", "ns", &Parameters::mpi_overhead, 0, kMostTime,
     "MPI's matching and progress for each message, at either end"},
    {"radix", "count", &Parameters::radix, 2, 8, "of npu_v2: one more than the members that each tells in a phase"},
    {"skew_seed", "count", &Parameters::skew_seed, 0, 4294967295.0, "of the random numbers"},
    {"pe_private", "kB", &Parameters::pe_private, 0, 1e6, "memory of a PE (PSS), its heap left out"},
    {"pe_page_tables", "kB", &Parameters::pe_page_tables, 0, 1e6, "page tables of a PE"},
    {"network_address", "bytes", &Parameters::network_address, 0, 1e6, "what a PE must know to reach another"},
    {"network_key", "bytes", &Parameters::network_key, 0, 1e6, "the key to one region of another PE's memory"},
    {"network_worker", "kB", &Parameters::network_worker, 0, 1e6,
     "what UCX takes for one worker of a PE, without endpoints"},
    {"network_kept", "bytes", &Parameters::network_kept, 0, 1e6,
     "what a PE keeps of each other one, address and keys left out"},
    {"network_told", "bytes", &Parameters::network_told, 0, 1e6,
     "what each tells the others with its address and keys"},
    {"team_words", "bytes", &Parameters::team_words, 0, 1e6, "on the board of the node, for each PE and team"},
    {"startup_given", "bytes", &Parameters::startup_given, 0, 1e6,
     "what each PE gives to all others in shmem_init, on one node"},
    {"startup_steps", "count", &Parameters::startup_steps, 1, 1000, "steps of all PEs in shmem_init"},
});

constexpr auto kSources = std::to_array<std::string_view>({"measured", "assumed", "specified"});

struct Words {
  std::string key, value, unit, source, note;
};

Words words_of(const std::string& line) {
  std::istringstream in(line);
  Words words;
  in >> words.key >> words.value >> words.unit >> words.source >> std::ws;
  std::getline(in, words.note);
  return words;
}

class Reader {
 public:
  /// "" or what is wrong.
  std::string take(const std::string& content) {
    const Words words = words_of(content);
    if (words.note.empty()) {
      return words.key + ": a line is a key, a value, a unit, a source and where the value comes from";
    }
    if (std::ranges::find(kSources, words.source) == kSources.end()) {
      return words.key + ": the source is measured, assumed or specified, not \"" + words.source + "\"";
    }
    const auto is_same = [&words](const ParameterLine& line) { return line.key == words.key; };
    if (std::ranges::any_of(file_.lines, is_same)) return words.key + " is there twice";
    return words.key == kSkewKey ? take_distribution(words) : take_number(words);
  }

  ParameterFile file(const std::string& name) {
    std::string missing;
    const auto look_for = [&](const std::string& key) {
      const auto is_it = [&key](const ParameterLine& line) { return line.key == key; };
      if (std::ranges::none_of(file_.lines, is_it)) missing += (missing.empty() ? "" : ", ") + key;
    };
    for (const Spec& spec : kSpecs) look_for(spec.key);
    look_for(kSkewKey);
    if (!missing.empty()) throw std::runtime_error(name + " does not say: " + missing);
    return std::move(file_);
  }

 private:
  std::string take_distribution(const Words& words) {
    constexpr auto kNames = std::to_array<std::string_view>({"none", "uniform", "exponential"});
    const auto* const found = std::ranges::find(kNames, words.value);
    if (found == kNames.end()) return words.key + " is none, uniform or exponential, not \"" + words.value + "\"";
    if (words.unit != "-") return words.key + " has no unit: write -, not \"" + words.unit + "\"";
    file_.values.skew = static_cast<Distribution>(found - kNames.begin());
    file_.lines.push_back(
        {words.key, words.value, words.unit, words.source, words.note, "how the times that members work are spread"});
    return "";
  }

  std::string take_number(const Words& words) {
    const auto* const spec = std::ranges::find_if(kSpecs, [&words](const Spec& one) { return one.key == words.key; });
    if (spec == kSpecs.end()) return "there is no parameter " + words.key;
    if (words.unit != spec->unit) {
      return words.key + " is in " + spec->unit + ", not in \"" + words.unit + "\"";
    }
    const auto number = shmem::table_number<double>(words.value, spec->least, spec->most);
    const bool whole = std::string_view(spec->unit) == "count";
    if (!number || (whole && *number != std::floor(*number))) {
      std::ostringstream text;
      text << words.key << " is a " << (whole ? "whole " : "") << "number from " << spec->least << " to " << spec->most
           << ", not \"" << words.value << '"';
      return text.str();
    }
    file_.values.*spec->value = *number;
    file_.lines.push_back({words.key, words.value, words.unit, words.source, words.note, spec->meaning});
    return "";
  }

  ParameterFile file_;
};

}  // namespace

Time from_nanoseconds(double nanoseconds) {
  return static_cast<Time>(std::llround(nanoseconds * 1000));
}

double in_microseconds(Time time) {
  return static_cast<double>(time) / 1e6;
}

ParameterFile read_parameters(const std::string& name, const std::string& text) {
  Reader reader;
  const shmem::TableText table{name, "parameters", kFormat};
  const auto lines = shmem::read_table(
      table, text, [&reader](int /*line*/, const std::string& content) { return reader.take(content); });
  if (!lines) throw std::runtime_error(lines.error().text);
  return reader.file(name);
}

std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file + ": " + std::generic_category().message(errno));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace scale

// SPDX-License-Identifier: Apache-2.0
// What the model is told of the machines that it plays: numbers with their units, each with where it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scale {

/// Picoseconds: whole numbers, so that the order of events is the same on every machine.
using Time = std::int64_t;
Time from_nanoseconds(double nanoseconds);
double in_microseconds(Time time);

enum class Distribution { kNone, kUniform, kExponential };

/// Nanoseconds, bytes and counts; what each means is in the table of parameters.cpp.
struct Parameters {
  double line_round_trip = 0;
  double line_share = 0;
  double line_read = 0;
  double release_store = 0;
  double doorbell_store = 0;
  double switch_round_trip = 0;
  double switch_arrival_gap = 0;
  double switch_release_gap = 0;
  double ports_per_switch = 0;
  double pes_per_node = 0;
  double network_latency = 0;
  double network_overhead = 0;
  double network_gap = 0;
  double network_byte = 0;
  double message_bytes = 0;
  double mpi_overhead = 0;
  double radix = 0;
  double skew_seed = 0;
  double pe_private = 0;
  double pe_page_tables = 0;
  double network_address = 0;
  double network_key = 0;
  double network_worker = 0;
  double network_kept = 0;
  double network_told = 0;
  double team_words = 0;
  double startup_given = 0;
  double startup_steps = 0;
  Distribution skew = Distribution::kNone;

  bool operator==(const Parameters&) const = default;
};

/// As the file has it, for people.
struct ParameterLine {
  std::string key, value, unit, source, note;
  std::string meaning;
};

struct ParameterFile {
  Parameters values;
  std::vector<ParameterLine> lines;
};

/// Lines of key, value, unit, source (measured, assumed or specified) and where it comes from. `name` is the file's,
/// for messages. Throws std::runtime_error that names line and key: a key that is unknown, missing or there twice, a
/// value that is no number or out of range, another unit, no source.
ParameterFile read_parameters(const std::string& name, const std::string& text);

/// Of a file. Throws std::runtime_error.
std::string contents_of(const std::string& file);

}  // namespace scale

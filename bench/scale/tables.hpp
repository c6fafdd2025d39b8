// SPDX-License-Identifier: Apache-2.0
// What docs/scaling.md shows: tables in Markdown, and pictures.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/scale/measured.hpp"
#include "bench/scale/parameters.hpp"

namespace scale {

struct Document {
  std::map<std::string, std::string> tables;    // by the name of the place where each stands
  std::map<std::string, std::string> pictures;  // by the name of the file
};

/// The same for the same input, on every machine.
Document make_document(const ParameterFile& parameters, const std::vector<Measured>& measured);

/// `page` with each table between "<!-- bench_scale NAME -->" and "<!-- end -->". Throws std::runtime_error if a table
/// has no place in it, or a place no table.
std::string filled(const std::string& page, const std::map<std::string, std::string>& tables);

}  // namespace scale

// SPDX-License-Identifier: Apache-2.0
#include "bench/scale/measure.hpp"

#include <exception>
#include <iostream>
#include <memory>

#include "bench/jobs.hpp"
#include "shmem/barrier/algorithm_table.hpp"

namespace scale {
namespace {

using bench::Point;

Measured measured(int pes, const bench::Series& series) {
  const auto points = series.usable();
  const auto figure = spread_of(points, [](const Point& point) { return point.figure; });
  return {.pes = pes,
          .processors = bench::own_processors(),
          .least = figure.least,
          .median = figure.middle,
          .raw = spread_of(points, [](const Point& point) { return point.raw(); }).middle,
          .base = spread_of(points, [](const Point& point) { return point.base; }).middle,
          .ratio = spread_of(points, [](const Point& point) { return point.ratio(); }).middle,
          .name = series.name};
}

}  // namespace

std::vector<Measured> measure(const std::vector<int>& sizes) {
  const bench::Folder folder;
  std::unique_ptr<bench::OpenMpi> openmpi;
  try {
    openmpi = std::make_unique<bench::OpenMpi>(folder);
  } catch (const std::exception& error) {
    std::cerr << "Open MPI's is left out: " << error.what() << '\n';
  }
  std::vector<std::string> names;
  names.reserve(shmem::kAlgorithms.size());
  for (const auto& spec : shmem::kAlgorithms) names.emplace_back(spec.name);
  std::vector<Measured> all;
  for (const int pes : sizes) {
    auto series = bench::measure_ours(folder, pes, names);
    if (openmpi) {
      for (auto& theirs : openmpi->measure(pes)) series.push_back(std::move(theirs));
    }
    for (const bench::Series& one : series) all.push_back(measured(pes, one));
  }
  return all;
}

}  // namespace scale

// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/results.hpp"

#include <algorithm>
#include <numeric>

namespace kv_program {

double imbalance(const Load& load) {
  const auto total = std::accumulate(load.begin(), load.end(), std::int64_t{0});
  if (total == 0) {
    return 0;
  }
  const auto most = static_cast<double>(*std::max_element(load.begin(), load.end()));
  return most * static_cast<double>(load.size()) / static_cast<double>(total) - 1;
}

std::optional<double> Results::median(std::optional<double> RoundResult::*value) const {
  std::vector<double> values;
  for (const RoundResult& round : rounds) {
    if (round.*value) {
      values.push_back(*(round.*value));
    }
  }
  if (values.empty()) {
    return std::nullopt;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Results::mean_imbalance(Load RoundResult::*load) const {
  double sum = 0;
  for (const RoundResult& round : rounds) {
    sum += imbalance(round.*load);
  }
  return rounds.empty() ? 0 : sum / static_cast<double>(rounds.size());
}

std::vector<double> Results::mean_load(Load RoundResult::*load) const {
  std::vector<double> mean(rounds.empty() ? 0 : (rounds.front().*load).size());
  for (std::size_t pe = 0; pe < mean.size(); ++pe) {
    const auto add = [&](std::int64_t sum, const RoundResult& round) { return sum + (round.*load)[pe]; };
    const auto sum = std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0}, add);
    mean[pe] = static_cast<double>(sum) / static_cast<double>(rounds.size());
  }
  return mean;
}

std::int64_t Results::spared() const {
  const auto add = [](std::int64_t sum, const RoundResult& round) { return sum + round.spared; };
  return std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0}, add);
}

}  // namespace kv_program

// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/incoherent/barrier_run.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace incoherent {

namespace {

constexpr std::size_t kTeamLines = sizeof(shmem::TeamSync) / sizeof(shmem::SyncWord);
static_assert(sizeof(shmem::TeamSync) % sizeof(shmem::SyncWord) == 0);

std::size_t lines_of(const std::vector<int>& cores_of) {
  return cores_of.size() * (kTeamLines + shmem::kRoundWords) +
         std::reduce(cores_of.begin(), cores_of.end(), std::size_t{0});
}

}  // namespace

std::vector<int> alike(int pes, int cores) {
  return std::vector<int>(static_cast<std::size_t>(pes), cores);
}

std::string BarrierSetup::text() const {
  std::string text;
  for (const shmem::Algorithm algorithm : algorithms) {
    text += std::string(shmem::name_of(algorithm)) + " ";
  }
  const auto [fewest, most] = std::ranges::minmax(cores_of);
  return text + "on " + std::to_string(cores_of.size()) + " PEs of " + std::to_string(fewest) + " to " +
         std::to_string(most) + " cores, " + std::to_string(barriers) + " barriers";
}

class BarrierRun::View {
 public:
  View(BarrierRun& run, int me) : run_(run), me_(me) {}

  [[nodiscard]] int size() const { return run_.pes_; }
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] shmem::TeamSync& member(int i) const { return run_.team(i); }
  [[nodiscard]] shmem::TeamSync& mine() const { return member(me_); }
  [[nodiscard]] shmem::SyncWord& round(int member, int i) const {
    return run_.rounds(member)[static_cast<std::size_t>(i)];
  }

 private:
  BarrierRun& run_;
  int me_;
};

BarrierRun::BarrierRun(BarrierSetup setup)
    : setup_(std::move(setup)),
      pes_(static_cast<int>(setup_.cores_of.size())),
      cores_(std::reduce(setup_.cores_of.begin(), setup_.cores_of.end())),
      lines_(lines_of(setup_.cores_of)),
      machine_(setup_.cores_of, lines_, [this](int line) { return name(line); }) {}

shmem::TeamSync& BarrierRun::team(int pe) {
  return *reinterpret_cast<shmem::TeamSync*>(&lines_[static_cast<std::size_t>(pe) * kTeamLines]);
}

shmem::RoundWords& BarrierRun::rounds(int pe) {
  const std::size_t first = static_cast<std::size_t>(pes_) * kTeamLines;
  return *reinterpret_cast<shmem::RoundWords*>(&lines_[first + static_cast<std::size_t>(pe) * shmem::kRoundWords]);
}

shmem::SyncWord& BarrierRun::data(int core) {
  return lines_[lines_.size() - static_cast<std::size_t>(cores_) + static_cast<std::size_t>(core)];
}

std::string BarrierRun::name(int line) const {
  const int team_lines = pes_ * static_cast<int>(kTeamLines);
  if (line < team_lines) {
    const std::size_t offset = static_cast<std::size_t>(line) % kTeamLines * sizeof(shmem::SyncWord);
    const char* word = offset == offsetof(shmem::TeamSync, round)     ? "round"
                       : offset == offsetof(shmem::TeamSync, release) ? "release"
                       : offset == offsetof(shmem::TeamSync, counter) ? "counter"
                                                                      : "a line of no algorithm";
    return std::string(word) + " of PE " + std::to_string(line / static_cast<int>(kTeamLines));
  }
  const int words = static_cast<int>(shmem::kRoundWords);
  if (line < team_lines + pes_ * words) {
    return "word " + std::to_string((line - team_lines) % words) + " of PE " +
           std::to_string((line - team_lines) / words);
  }
  return "data of core " + std::to_string(line - team_lines - pes_ * words);
}

/// Counts so that the low 32 bits of the number wrap in the middle of the run.
std::uint64_t BarrierRun::count_of(int barrier) const {
  return (std::uint64_t{1} << 32) - static_cast<std::uint64_t>(setup_.barriers / 2) +
         static_cast<std::uint64_t>(barrier);
}

std::optional<std::string> BarrierRun::run(std::uint64_t seed, Sites& sites) {
  entered_.assign(static_cast<std::size_t>(cores_), 0);
  entered_by_.assign(static_cast<std::size_t>(setup_.barriers), 0);
  auto failure = machine_.run(seed, sites, [this](int core) { run_core(core); });
  if (failure) {
    *failure = setup_.text() + ", seed " + std::to_string(seed) + ": " + *failure;
  }
  return failure;
}

void BarrierRun::run_core(int number) {
  SimCore core(machine_, number);
  const View view(*this, machine_.pe_of(number));
  for (int barrier = 0; barrier < setup_.barriers && !machine_.failed(); ++barrier) {
    const std::uint64_t count = count_of(barrier);
    core.store(data(number), count);
    ++entered_[static_cast<std::size_t>(number)];
    ++entered_by_[static_cast<std::size_t>(barrier)];
    const shmem::Algorithm algorithm = setup_.algorithms[static_cast<std::size_t>(barrier) % setup_.algorithms.size()];
    const std::errc error = shmem::arrive_and_wait({algorithm, setup_.tuning}, core, view, count);
    if (error != std::errc{}) {
      machine_.fail("an error: " + std::make_error_code(error).message());
      return;
    }
    check_entered(number, barrier);
    look_at_data(core, number, count);
  }
}

void BarrierRun::check_entered(int number, int barrier) {
  if (entered_by_[static_cast<std::size_t>(barrier)] == cores_ || machine_.failed()) {
    return;
  }
  const auto missing = std::ranges::find_if(entered_, [barrier](int entered) { return entered <= barrier; });
  const int late = static_cast<int>(missing - entered_.begin());
  machine_.fail("core " + std::to_string(machine_.index_of(number)) + " of PE " +
                std::to_string(machine_.pe_of(number)) + " left barrier " + std::to_string(barrier) + " before core " +
                std::to_string(machine_.index_of(late)) + " of PE " + std::to_string(machine_.pe_of(late)) +
                " had entered it");
}

/// Checks the data of all cores. With many cores, checks every nth one, with another offset in each barrier.
void BarrierRun::look_at_data(SimCore& core, int number, std::uint64_t at_least) {
  constexpr int kAll = 64;
  const int step = std::max(1, cores_ / kAll);
  const int first = number + static_cast<int>(at_least % static_cast<unsigned>(step));
  for (int distance = 0; distance < cores_ && !machine_.failed(); distance += step) {
    const int other = (first + distance) % cores_;
    const std::uint64_t seen = core.load(data(other));
    // A core that is one ahead has stored for the next barrier, but cannot leave it before this core enters.
    if (seen < at_least || seen > at_least + 1) {
      machine_.fail("core " + std::to_string(machine_.index_of(number)) + " of PE " +
                    std::to_string(machine_.pe_of(number)) + " sees " + std::to_string(seen) + " in " +
                    name(machine_.line_of(&data(other))) + " after barrier " + std::to_string(at_least));
    }
  }
}

}  // namespace incoherent

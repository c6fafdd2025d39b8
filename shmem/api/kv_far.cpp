// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/kv_far.hpp"

namespace shmem::api {
namespace {

class FarOfTeam final : public kv::Far {
 public:
  FarOfTeam(const Job& job, Team& team) : job_(job), team_(team) {}

  [[nodiscard]] bool is_far(int pe) const override {
    const TeamMap& map = team_.map();
    return pe >= 0 && pe < map.size && job_.nodes.number(map.pe(pe)) < 0;
  }
  [[nodiscard]] bool has(const void* mine, std::size_t bytes, int pe) const override {
    return job_.locate_far(mine, bytes, world(pe)).has_value();
  }

  Result<void> start_put(void* mine, int pe, const void* from, std::size_t bytes) override {
    const auto to = locate(mine, bytes, pe);
    return to ? job_.network->start_put(*to, from, bytes) : tl::make_unexpected(to.error());
  }
  Result<void> start_store(const SyncWord& mine, int pe, std::uint64_t value) override {
    const auto word = locate(&mine.value, sizeof value, pe);
    return word ? job_.network->post_atomic(*word, sizeof value, AtomicOperation::kSet, value)
                : tl::make_unexpected(word.error());
  }
  Result<void> get(void* to, const void* mine, int pe, std::size_t bytes) override {
    const auto from = locate(mine, bytes, pe);
    return from ? job_.network->get(to, *from, bytes) : tl::make_unexpected(from.error());
  }
  Result<std::uint64_t> load(const SyncWord& mine, int pe) override {
    const auto word = locate(&mine.value, sizeof(std::uint64_t), pe);
    return word ? job_.network->fetch_atomic(*word, sizeof(std::uint64_t), AtomicOperation::kFetch, 0)
                : tl::make_unexpected(word.error());
  }
  Result<void> fence() override { return job_.network->fence(); }
  Result<void> quiet() override { return job_.network->quiet(); }

  Result<Vote> vote(std::uint64_t digest, bool willing) override {
    const auto verdict = team_.vote(digest, willing, 0);
    if (!verdict) {
      return tl::make_unexpected(verdict.error());
    }
    return Vote{verdict->alike, verdict->willing, team_.map().member(verdict->other).value_or(-1)};
  }

 private:
  [[nodiscard]] int world(int pe) const { return team_.map().pe(pe); }
  [[nodiscard]] Result<FarPlace> locate(const void* mine, std::size_t bytes, int pe) const {
    const auto place = job_.locate_far(mine, bytes, world(pe));
    return place ? Result<FarPlace>(*place)
                 : fail(std::errc::bad_address, "PE " + std::to_string(pe) + " has no such memory");
  }

  const Job& job_;
  Team& team_;
};

}  // namespace

std::shared_ptr<kv::Far> make_far(const Job& job, Team& team) {
  return team.span() != nullptr ? std::make_shared<FarOfTeam>(job, team) : nullptr;
}

}  // namespace shmem::api

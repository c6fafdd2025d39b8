// SPDX-License-Identifier: Apache-2.0
#include "shmem/collective/move.hpp"

#include <cstring>

namespace shmem {
namespace {

/// Through the cache: what is fetched is for this PE to use.
void fetch(std::byte* to, const std::byte* from, std::size_t size) {
  if (size != 0) {
    std::memmove(to, from, size);  // a member's own part may be in place
  }
}

void fetch(std::byte* to, const std::byte* from, const Strided& block) {
  if (block.to_step == block.element && block.from_step == block.element) {
    fetch(to, from, block.element * block.count);
    return;
  }
  for (std::size_t i = 0; i < block.count; ++i) {
    std::memcpy(to + i * block.to_step, from + i * block.from_step, block.element);
  }
}

/// Meets, calls work(member) for all members, and meets again. Everybody begins with his own part, then goes to the
/// right: so not all read the same member's memory at once.
template <typename Work>
Result<void> between_meetings(const Members& members, Work work) {
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  for (int distance = 0; distance < members.size(); ++distance) {
    work((members.me + distance) % members.size());
  }
  return members.meet();
}

}  // namespace

Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root,
                       bool root_too) {
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  if (members.me != root || root_too) {
    fetch(static_cast<std::byte*>(dest), members.at(source, root), size);
  }
  return members.meet();
}

Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size) {
  auto* to = static_cast<std::byte*>(dest);
  return between_meetings(members, [&](int member) {
    fetch(to + static_cast<std::size_t>(member) * size, members.at(source, member), size);
  });
}

Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size,
                     const std::function<Result<void>(std::size_t total)>& check) {
  members.tell(size);
  if (auto ok = members.meet(); !ok) {
    return ok;
  }
  std::size_t total = 0;
  for (int member = 0; member < members.size(); ++member) {
    total += members.told(member);
  }
  const Result<void> fits = check(total);
  auto* to = static_cast<std::byte*>(dest);
  for (int member = 0; fits && member < members.size(); ++member) {
    const std::size_t length = members.told(member);
    fetch(to, members.at(source, member), length);
    to += length;
  }
  auto ok = members.meet();
  return ok ? fits : ok;
}

Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block) {
  auto* to = static_cast<std::byte*>(dest);
  const std::size_t to_block = block.to_step * block.count;
  const std::size_t from_block = block.from_step * block.count;
  return between_meetings(members, [&](int member) {
    fetch(to + static_cast<std::size_t>(member) * to_block,
          members.at(source, member) + static_cast<std::size_t>(members.me) * from_block, block);
  });
}

}  // namespace shmem

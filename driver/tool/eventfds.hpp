// SPDX-License-Identifier: Apache-2.0
// The eventfds of this process: by one of them libgba hears of a group's interrupt, and it gives none out.
#pragma once

#include <cstdint>
#include <vector>

namespace tool {

std::vector<int> open_eventfds();
/// The first that is not one of `before`; -1 if there is none.
int new_eventfd(const std::vector<int>& before);

/// Forgets what was told so far. The eventfd must be one that does not block.
void drain(int eventfd);
/// True once something is told; false if nothing is for `patience_ns`.
bool comes(int eventfd, std::uint64_t patience_ns);

}  // namespace tool

// SPDX-License-Identifier: Apache-2.0
// Connections whose other ends have not proved that they know the secret: which of them ends in a flood.
#pragma once

#include <cstddef>
#include <span>

#include "wire/endpoint.hpp"

namespace wire {

struct Stranger {
  const Endpoint* from;
  bool has_greeted;  // its first message has come
};

/// The place in `strangers`, the oldest first, of the one that makes room for another: the oldest of the largest group.
/// A group has one address, and has greeted or not. So a flood from one address, or of one kind, makes room for itself,
/// and others have the time to prove themselves. REQUIRES: there is one.
std::size_t place_to_free(std::span<const Stranger> strangers);

}  // namespace wire

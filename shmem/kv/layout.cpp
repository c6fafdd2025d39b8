// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/layout.hpp"

#include <string>

namespace shmem::kv {
namespace {

tl::unexpected<Error> invalid(std::string what) {
  return fail(std::errc::invalid_argument, std::move(what));
}

std::string describe(const Shape& shape) {
  return std::to_string(shape.layers) + " layers of " + std::to_string(shape.blocks) + " blocks of " +
         std::to_string(shape.heads) + " heads x " + std::to_string(shape.page) + " x " +
         std::to_string(shape.head_dim) + " elements";
}

/// K and V side by side in a chunk, or in planes of their own.
struct Division {
  std::size_t planes, parts_in_chunk;
};

Division division_of(Format format, std::size_t layers) {
  switch (format) {
    case Format::kApart:
    case Format::kByLayer:
      return {2 * layers, 1};
    case Format::kInterleaved:
      return {layers, 2};
    case Format::kByBlock:
      return {1, 2 * layers};
    case Format::kLatent:
      break;
  }
  return {layers, 1};
}

}  // namespace

Result<Layout> layout_of(const Shape& shape) {
  if (static_cast<int>(shape.format) < 0 || static_cast<int>(shape.format) >= kFormats) {
    return invalid("format " + std::to_string(static_cast<int>(shape.format)) + " is none (SHMEMX_KV_APART, ...)");
  }
  if (const auto size = shape.element_size; size != 1 && size != 2 && size != 4 && size != 8) {
    return invalid("element size " + std::to_string(size) + " is not 1, 2, 4 or 8");
  }
  std::size_t bytes = 2;  // K and V
  for (const std::int64_t dimension :
       {shape.heads, shape.page, shape.head_dim, shape.element_size, shape.layers, shape.blocks}) {
    std::size_t product = 0;
    if (dimension <= 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(dimension), &product) ||
        product > static_cast<std::size_t>(PTRDIFF_MAX)) {
      return invalid("a cache of " + describe(shape) +
                     " cannot be: dimensions are positive, and the whole fits into memory");
    }
    bytes = product;
  }
  const std::size_t part = bytes / 2 / static_cast<std::size_t>(shape.layers) / static_cast<std::size_t>(shape.blocks);
  const Division division = division_of(shape.format, static_cast<std::size_t>(shape.layers));
  return Layout{static_cast<std::size_t>(shape.blocks), division.planes, division.parts_in_chunk * part,
                shape.format == Format::kApart};
}

}  // namespace shmem::kv

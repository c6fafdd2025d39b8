// SPDX-License-Identifier: Apache-2.0
// What --model and --dtype know: the KV caches of models that are served, and the width of an element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shmem/kv/program/layout.hpp"

namespace kv_program {

/// The bytes of an element of `dtype`, as frameworks name it; nothing if there is no such.
std::optional<std::int32_t> element_size_of(const std::string& dtype);
/// The names that there are, for people.
std::string dtype_names();

struct Model {
  const char* name = "";
  Shape shape{};  // of all layers; without blocks, which the memory decides
  const char* dtype = "";
  const char* source = "";  // where its numbers are published
};

/// By name, in upper or lower case; nullptr if there is no such model.
const Model* find_model(const std::string& name);
/// A table of all models.
std::string list_models();

}  // namespace kv_program

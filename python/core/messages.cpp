// SPDX-License-Identifier: Apache-2.0
#include "python/core/messages.hpp"

#include <shmemx.h>

#include <cstdio>

namespace shmem_kv {
namespace {

thread_local HeldMessages* holding = nullptr;

void print(std::string text) {
  // In one piece, so that lines of PEs do not mix.
  text += '\n';
  std::fputs(text.c_str(), stderr);
}

}  // namespace

HeldMessages::HeldMessages() {
  holding = this;
}

HeldMessages::~HeldMessages() {
  holding = nullptr;
  for (const auto& text : texts_) {
    print(text);
  }
}

void HeldMessages::drop(const std::string& text) {
  std::erase(texts_, text);
}

void HeldMessages::begin() {
  shmemx_set_logger(&HeldMessages::take);
}

void HeldMessages::take(int level, const char* text) {
  // Warnings name what a call waits for. They are printed at once, because the call may wait forever.
  if (level == SHMEMX_LOG_ERROR && holding != nullptr) {
    holding->texts_.emplace_back(text);
  } else {
    print(text);
  }
}

}  // namespace shmem_kv

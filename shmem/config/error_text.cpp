// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/error_text.hpp"

#include "shmem/config/process_state.hpp"

namespace shmem {

int keep_error(const Error& error) {
  if (std::string* text = kvexchange_error_text_1(); text != nullptr) {
    *text = error.text;
  }
  return -static_cast<int>(error.code);
}

const char* kept_error_text() {
  const std::string* text = kvexchange_error_text_1();
  return text != nullptr ? text->c_str() : "";
}

}  // namespace shmem

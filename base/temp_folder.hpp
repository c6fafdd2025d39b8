// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace base {

/// A temporary folder that is removed with the object, together with its content. The constructor throws
/// std::system_error.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace base

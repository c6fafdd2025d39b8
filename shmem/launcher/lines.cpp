// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/lines.hpp"

namespace shmem::launcher {

void Lines::add(int pe, std::string_view bytes, std::string& out) {
  std::string& waiting = pes_[static_cast<std::size_t>(pe)].waiting;
  const auto last = bytes.rfind('\n');
  if (last != std::string_view::npos) {
    if (!waiting.empty()) {
      waiting.append(bytes.substr(0, last + 1));
      pass_on(pe, waiting, out);
      waiting.clear();
    } else {
      pass_on(pe, bytes.substr(0, last + 1), out);
    }
    bytes.remove_prefix(last + 1);
  }
  waiting.append(bytes);
  if (waiting.size() > kLongest) release(pe, out);
}

void Lines::release(int pe, std::string& out) {
  std::string waiting;
  waiting.swap(pes_[static_cast<std::size_t>(pe)].waiting);
  if (!waiting.empty()) pass_on(pe, waiting, out);
}

void Lines::add_own(std::string_view line, std::string& out) {
  end_open_line(out);
  out.append(line);
}

void Lines::end_open_line(std::string& out) {
  if (open_ == kNobody) return;
  out.push_back('\n');
  pes_[static_cast<std::size_t>(open_)].in_line = false;
  open_ = kNobody;
}

void Lines::pass_on(int pe, std::string_view bytes, std::string& out) {
  if (open_ != pe && (style_.tags || style_.on_terminal)) end_open_line(out);
  bool& in_line = pes_[static_cast<std::size_t>(pe)].in_line;
  if (style_.tags) {
    const std::string tag = "[" + std::to_string(pe) + "] ";
    for (std::string_view rest = bytes; !rest.empty();) {
      const auto end = rest.find('\n');
      const std::string_view line = rest.substr(0, end == std::string_view::npos ? end : end + 1);
      if (!in_line) out.append(tag);
      out.append(line);
      in_line = line.back() != '\n';
      rest.remove_prefix(line.size());
    }
  } else {
    out.append(bytes);
    in_line = bytes.back() != '\n';
  }
  open_ = in_line ? pe : kNobody;
}

}  // namespace shmem::launcher

// SPDX-License-Identifier: Apache-2.0
// libfmt's own code, once: its header-only form, compiled here, so that what is built needs no libfmt when it runs, a
// static program finds it too, and no other file spends time on it.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

namespace {

// An inline function is emitted where its address is taken.
[[gnu::used]] std::string (*const kFormat)(fmt::string_view, fmt::format_args) = &fmt::vformat;

}  // namespace

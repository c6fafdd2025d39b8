// SPDX-License-Identifier: Apache-2.0
// Whether this process is the one that made something, or a child that it has forked since.
#pragma once

namespace base {

/// How many forks lie between this process and the one that first asked.
unsigned forks();

}  // namespace base

// SPDX-License-Identifier: Apache-2.0
// Is this built for a sanitizer? What takes minutes there repeats less often; other builds have the full counts.
#pragma once

namespace test_support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace test_support

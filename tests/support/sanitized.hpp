// SPDX-License-Identifier: Apache-2.0
// Is this built for a sanitizer, or for an emulator? What takes minutes there repeats less often; other builds have the
// full counts.
#pragma once

namespace test_support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Built for another processor (preset arm64) and run by qemu-user, which cannot start programs of the build tree and
/// does not do all that a kernel does.
#if defined(GBA_TEST_EMULATED)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

}  // namespace test_support

// SPDX-License-Identifier: Apache-2.0
#include "fake_device/shared_memory.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/memfd.hpp"

namespace fake_device {

namespace {

// The pages of an immutable file cannot be taken out of it, not even by those who may write it. Mapping it is allowed.
bool protect(int fd) {
  const long flags = FS_IMMUTABLE_FL;
  return ::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

}  // namespace

Result<SharedPages> SharedPages::create(const char* name, std::size_t size) {
  const auto failed = [](const Error& error) {
    return failure(error.text + " (has the device run out of memory or open files?)");
  };
  auto fd = base::create_memfd(name, size);
  if (!fd) {
    return failed(fd.error());
  }
  auto pages = base::Mapping::share(fd->get(), size);
  if (!pages) {
    return failed(pages.error());
  }
  const bool is_protected = protect(fd->get());
  return SharedPages(*std::move(fd), *std::move(pages), is_protected);
}

namespace detail {

constinit thread_local GuardState guard_state;

}  // namespace detail

namespace {

// A sparse file with one page that is there, in its middle. It is mapped shared, so that it needs no memory when it is
// mapped: with vm.overcommit_memory=2 there might be none to promise.
constexpr std::size_t kMiddle = kLargestPage;
const std::size_t kSmallPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
int substitute = -1;

// Replaces the client's memory by our own, so that the store succeeds when it is tried again. All of the page, because
// a part of a huge page cannot be replaced. The access finds the page that is there.
bool replace(std::byte* page, std::size_t size, const std::byte* fault) {
  const auto before = static_cast<std::size_t>(fault - page) / kSmallPage * kSmallPage;
  return ::mmap(page, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, substitute,
                static_cast<off_t>(kMiddle - before)) != MAP_FAILED;
}

int make_substitute() {
  base::UniqueFd file(::memfd_create("gba-substitute", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(kMiddle + kLargestPage)) != 0 ||
      ::fallocate(file.get(), 0, static_cast<off_t>(kMiddle), static_cast<off_t>(kSmallPage)) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make memory that stands in for a client's");
  }
  return file.release();
}

void on_sigbus(int number, siginfo_t* info, void* /*context*/) {
  detail::GuardState& state = detail::guard_state;
  auto* const address = static_cast<std::byte*>(info->si_addr);
  const bool ours = address >= state.page && address < state.page + state.size;
  if (ours && replace(state.page, state.size, address)) {
    state.faulted = true;
    return;
  }
  ::signal(number, SIG_DFL);  // the instruction runs again, and ends the process
}

}  // namespace

void install_sigbus_guard() {
  if (substitute < 0) {
    substitute = make_substitute();
  }
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace fake_device

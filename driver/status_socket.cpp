// SPDX-License-Identifier: Apache-2.0
#include "driver/status_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/hash.hpp"
#include "base/unix_address.hpp"
#include "base/user.hpp"
#include "driver/vfio_user_channel.hpp"

namespace gba {

namespace {

using base::fail;
using base::fail_errno;
using base::Result;
using base::UniqueFd;

/// Longer than the opener waits for its device.
constexpr std::chrono::seconds kAnswerLimit{10};
constexpr std::uint32_t kMostGroups = 4096;
constexpr const char* kSilent = "it does not answer; is it stopped?";

/// Names have a limited length, keys do not.
std::uint64_t digest(const std::string& key) {
  base::Fnv hash;
  hash.add(key);
  return hash.value();
}

std::string name_prefix(const std::string& key) {
  return fmt::format("gba-status/{:016x}/", digest(key));
}

struct Opener {
  int pid = 0;
  std::string name;
};

std::vector<Opener> openers_of(const std::string& key) {
  const std::string prefix = name_prefix(key);
  std::vector<Opener> openers;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const auto at = line.find(" @" + prefix);
    if (at == std::string::npos) {
      continue;
    }
    Opener opener{.name = line.substr(at + 2)};
    const char* const text = opener.name.data();
    std::from_chars(text + prefix.size(), text + opener.name.size(), opener.pid);
    const bool known =
        std::any_of(openers.begin(), openers.end(), [&](const Opener& o) { return o.name == opener.name; });
    if (opener.pid > 0 && !known) {
      openers.push_back(std::move(opener));
    }
  }
  return openers;
}

/// Abstract names have no permissions: any user could have taken it.
Result<ucred> check_opener(int socket) {
  const auto peer = base::peer_of(socket);
  if (!peer) {
    return fail_errno(errno, "SO_PEERCRED");
  }
  if (::geteuid() != 0 && !base::is_this_user(peer->uid)) {
    return fail(std::errc::permission_denied, "it is of another user");
  }
  return *peer;
}

Result<UniqueFd> receive_descriptor(int socket) {
  std::array<std::byte, 1> alongside{};
  std::vector<UniqueFd> descriptors;
  const auto received = receive_bytes(socket, alongside, descriptors, Deadline::after(kAnswerLimit));
  if (!received && received.error().code == std::errc::timed_out) {
    return fail(std::errc::timed_out, kSilent);
  }
  if (!received && received.error().code != std::errc::not_connected) {
    return received.error();
  }
  if (descriptors.size() != 1) {
    return fail(std::errc::connection_refused, "it closed the connection without an answer");
  }
  return std::move(descriptors.front());
}

/// False: the file is shorter. Reading instead of mapping: another process could still change it.
bool read_at(int file, void* to, std::size_t bytes, std::size_t from) {
  return ::pread(file, to, bytes, static_cast<off_t>(from)) == static_cast<ssize_t>(bytes);
}

/// Ends it, and keeps it from doing anything to the terminal that it is printed on: root also asks other users.
template <std::size_t kSize>
void make_text(char (&text)[kSize]) {
  text[kSize - 1] = '\0';
  for (char* character = &text[0]; *character != '\0'; ++character) {
    if (*character < ' ' || *character > '~') {
      *character = '?';
    }
  }
}

Result<StatusView> read_view(int file, const Opener& opener, const ucred& peer) {
  // In another pid namespace it has no number.
  StatusView view{
      .pid = peer.pid > 0 ? peer.pid : opener.pid, .user = peer.uid, .name = opener.name, .report = {}, .groups = {}};
  StatusReport& report = view.report;
  if (!read_at(file, &report, sizeof report, 0) || report.magic != kStatusMagic || report.size != sizeof report ||
      report.group_size != sizeof(gba_group_status) || report.groups > kMostGroups) {
    return fail(std::errc::protocol_error, "it uses another version of libgba");
  }
  view.groups.resize(report.groups);
  if (!read_at(file, view.groups.data(), view.groups.size() * sizeof(gba_group_status), sizeof report)) {
    return fail(std::errc::protocol_error, "its answer is cut off");
  }
  make_text(report.condition_text);
  make_text(report.info.path);
  make_text(report.info.backend);
  return view;
}

Result<StatusView> look_through(const Opener& opener) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = base::UnixAddress::of_text("@" + opener.name);
  constexpr timeval kConnectLimit{.tv_sec = kAnswerLimit.count(), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kConnectLimit, sizeof kConnectLimit);
  if (!socket || ::connect(socket.get(), address.get(), address.size) != 0) {
    return errno == EAGAIN ? fail(std::errc::timed_out, kSilent) : fail_errno(errno, "connect");
  }
  const auto peer = check_opener(socket.get());
  if (!peer) {
    return peer.error();
  }
  const auto file = receive_descriptor(socket.get());
  return file ? read_view(file->get(), opener, *peer) : file.error();
}

Result<StatusView> ask(const Opener& opener) {
  auto view = look_through(opener);
  return view ? std::move(view) : fail(view.error().code, fmt::format("process {}: {}", opener.pid, view.error().text));
}

}  // namespace

std::string key_of_socket(const std::string& socket) {
  struct stat status {};
  if (socket.starts_with('@') || ::stat(socket.c_str(), &status) != 0) {
    return socket;
  }
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

std::string key_of_function(const std::string& pci_address) {
  return "pci:" + pci_address;
}

std::string status_name(const std::string& key, int pid, unsigned number) {
  return fmt::format("{}{}/{}", name_prefix(key), pid, number);
}

Result<StatusView> look_through_opener(const std::string& key) {
  auto result = Result<StatusView>(fail(std::errc::no_such_process, "no process of this user answers for it"));
  for (const Opener& opener : openers_of(key)) {
    auto view = ask(opener);
    if (view && view->report.condition == 0) {
      return view;
    }
    if (view || !result) {
      result = std::move(view);
    }
  }
  return result;
}

Result<StatusView> look_again(const StatusView& before) {
  return ask({.pid = before.pid, .name = before.name});
}

}  // namespace gba

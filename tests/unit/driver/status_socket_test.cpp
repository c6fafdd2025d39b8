// SPDX-License-Identifier: Apache-2.0
// The answers that a process with an open device may give to a process that asks for its status.
#include "driver/status_socket.hpp"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "base/unix_address.hpp"

namespace gba {
namespace {

using base::UniqueFd;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

void send_file(int client, const Bytes& content) {
  const UniqueFd file(::memfd_create("answer", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  std::byte byte{};
  iovec part{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = file.get();
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  EXPECT_EQ(::sendmsg(client, &message, MSG_NOSIGNAL), 1);
}

/// The view of a client if this process answers with `content` in a file, or, without it, closes the connection.
base::Result<StatusView> look_at(const std::optional<Bytes>& content) {
  const std::string key = "status_socket_test " + std::to_string(::getpid());
  const UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = base::UnixAddress::of_text("@" + status_name(key, ::getpid(), 0));
  EXPECT_EQ(::bind(listener.get(), address.get(), address.size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  std::thread server([&] {
    const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (content) {
      send_file(client.get(), *content);
    }
  });
  auto view = look_through_opener(key);
  ::shutdown(listener.get(), SHUT_RDWR);  // ends accept4() if no client has connected
  server.join();
  return view;
}

void expect_refused(const std::optional<Bytes>& content, const std::string& text) {
  const auto view = look_at(content);
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error().text, HasSubstr(text));
  EXPECT_THAT(view.error().text, HasSubstr("process " + std::to_string(::getpid())));
}

Bytes bytes_of(const StatusReport& report, std::size_t groups = 0) {
  Bytes bytes(sizeof report + groups * sizeof(gba_group_status));
  std::memcpy(bytes.data(), &report, sizeof report);
  return bytes;
}

TEST(StatusSocket, ReportsWhatTheProcessSends) {
  StatusReport report;
  report.groups = 2;
  report.counters.arrivals = 7;
  const auto view = look_at(bytes_of(report, 2));
  ASSERT_TRUE(view) << view.error().text;
  EXPECT_EQ(view->pid, ::getpid());
  EXPECT_EQ(view->user, ::geteuid());
  EXPECT_EQ(view->groups.size(), 2U);
  EXPECT_EQ(view->report.counters.arrivals, 7U);
}

TEST(StatusSocket, MakesTextsPrintable) {
  StatusReport report;
  std::memset(report.info.path, 0x1b, sizeof report.info.path);
  std::memset(report.condition_text, 0xff, sizeof report.condition_text);
  const auto view = look_at(bytes_of(report));
  ASSERT_TRUE(view) << view.error().text;
  EXPECT_EQ(std::string(view->report.info.path), std::string(sizeof report.info.path - 1, '?'));
  EXPECT_EQ(std::string(view->report.condition_text), std::string(sizeof report.condition_text - 1, '?'));
}

TEST(StatusSocket, RefusesAnInvalidReport) {
  StatusReport report;
  expect_refused(std::nullopt, "closed the connection without an answer");
  expect_refused(Bytes{}, "another version");
  expect_refused(Bytes(sizeof report - 1), "another version");
  report.magic = 1;
  expect_refused(bytes_of(report), "another version");
  report = {};
  report.group_size += 8;
  expect_refused(bytes_of(report), "another version");
  report = {};
  report.groups = UINT32_MAX;
  expect_refused(bytes_of(report), "another version");
  report.groups = 3;
  expect_refused(bytes_of(report, 2), "cut off");
}

TEST(StatusSocket, ReportsThatNoProcessHasTheDevice) {
  const auto view = look_through_opener("nobody has this");
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, std::errc::no_such_process);
}

}  // namespace
}  // namespace gba

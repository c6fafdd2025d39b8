// SPDX-License-Identifier: Apache-2.0
#include "shmem/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "shmem/barrier/algorithm_table.hpp"

namespace shmem {
namespace {

using Setter = bool (*)(Options&, const std::string&);

struct Entry {
  OptionSpec spec;
  const char* expected;
  Setter set;
};

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional<T>(value) : std::nullopt;
}

// OpenSHMEM 1.6, section 8: a number, fractions allowed, and one of k K m M g G t T.
bool set_symmetric_size(Options& options, const std::string& text) {
  constexpr std::string_view kUnits = "kmgt";
  std::string_view digits = text;
  double scale = 1;
  if (!digits.empty()) {
    const auto unit = kUnits.find(static_cast<char>(digits.back() | 0x20));
    if (unit != std::string_view::npos) {
      scale = std::ldexp(1.0, 10 * (static_cast<int>(unit) + 1));
      digits.remove_suffix(1);
    }
  }
  const auto value = number<double>(digits);
  if (!value || !(*value > 0) || *value * scale < 1 || *value * scale >= 0x1p63) {
    return false;
  }
  options.symmetric_size = static_cast<std::size_t>(*value * scale);
  return true;
}

bool set_symmetric_globals(Options& options, const std::string& text) {
  options.symmetric_globals = text == "auto";
  return text == "auto" || text == "off";
}

bool set_hugepages(Options& options, const std::string& text) {
  HugePages& pages = options.placement.pages;
  if (text == "auto") {
    pages = HugePages::kAuto;
  } else if (text == "hugetlb") {
    pages = HugePages::kHugetlb;
  } else if (text == "thp") {
    pages = HugePages::kThp;
  } else if (text == "none") {
    pages = HugePages::kNone;
  } else {
    return false;
  }
  return true;
}

bool set_numa(Options& options, const std::string& text) {
  NumaPolicy& numa = options.placement.numa;
  if (text == "local") {
    numa = NumaPolicy::kLocal;
  } else if (text == "interleave") {
    numa = NumaPolicy::kInterleave;
  } else if (text == "none") {
    numa = NumaPolicy::kNone;
  } else {
    return false;
  }
  return true;
}

bool set_barrier_algorithm(Options& options, const std::string& text) {
  options.barrier_algorithm = text;
  return text == "auto" || text == "gba" || find_algorithm(text);
}

template <int Options::*Member, int Least, int Most>
bool set_between(Options& options, const std::string& text) {
  const auto value = number<int>(text);
  options.*Member = value.value_or(Least - 1);
  return value && *value >= Least && *value <= Most;
}

std::optional<std::chrono::milliseconds> seconds(const std::string& text) {
  const auto value = number<double>(text);
  if (!value || !(*value >= 0) || *value > 1e6) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(*value * 1000));
}

bool set_barrier_timeout(Options& options, const std::string& text) {
  const auto time = seconds(text);
  options.barrier_timeout = time.value_or(options.barrier_timeout);
  return time.has_value();
}

bool set_network_timeout(Options& options, const std::string& text) {
  const auto time = seconds(text);
  options.network_timeout = time.value_or(options.network_timeout);
  return time.has_value();
}

bool set_barrier_warning(Options& options, const std::string& text) {
  const auto time = seconds(text);
  options.barrier_warning = time.value_or(options.barrier_warning);
  return time.has_value();
}

bool set_bootstrap(Options& options, const std::string& text) {
  constexpr std::array<std::string_view, 5> kNames{"auto", "local", "uid", "pmix", "mpi"};  // as in BootstrapKind
  const auto* const found = std::ranges::find(kNames, text.empty() ? kNames[0] : std::string_view(text));
  options.bootstrap = BootstrapKind{static_cast<int>(found - kNames.begin())};
  return found != kNames.end();
}

bool set_bootstrap_timeout(Options& options, const std::string& text) {
  const auto time = seconds(text);
  options.bootstrap_timeout = time.value_or(options.bootstrap_timeout);
  return time && time->count() > 0;
}

template <std::string Options::*Member>
bool set_text(Options& options, const std::string& text) {
  options.*Member = text;
  return !text.empty();
}

bool set_gba_switch(Options& options, const std::string& text) {
  options.gba_switch = text;
  return !text.empty() && text.size() <= kLongestSwitchName;
}

template <std::optional<int> Options::*Member, int Least>
bool set_number(Options& options, const std::string& text) {
  options.*Member = number<int>(text);
  return (options.*Member).value_or(Least - 1) >= Least;
}

bool set_gba(Options& options, const std::string& text) {
  if (text == "auto") {
    options.gba = GbaUse::kAuto;
  } else if (text == "off") {
    options.gba = GbaUse::kOff;
  } else if (text == "require") {
    options.gba = GbaUse::kRequire;
  } else {
    return false;
  }
  return true;
}

template <bool Options::*Member>
bool set_switch(Options& options, const std::string& text) {
  options.*Member = text != "0";
  return true;
}

constexpr auto kTable = std::to_array<Entry>({
    {{"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "size", "1G",
      "bytes of symmetric heap per PE; k, m, g, t multiply"},
     "a number above 0, with k, m, g or t behind it",
     set_symmetric_size},
    {{"SHMEM_SYMMETRIC_GLOBALS", nullptr, "name", "auto",
      "whether global and static variables are symmetric: auto (where they can be) or off"},
     "auto or off",
     set_symmetric_globals},
    {{"SHMEM_HUGEPAGES", nullptr, "name", "auto",
      "pages of the symmetric heaps: auto, hugetlb (both: hugetlb, else thp, else small), thp (else small) or none"},
     "auto, hugetlb, thp or none",
     set_hugepages},
    {{"SHMEM_NUMA", nullptr, "name", "local",
      "where a PE's symmetric heap lies: local (on the PE's node), interleave or none"},
     "local, interleave or none",
     set_numa},
    {{"SHMEM_BARRIER_ALGORITHM", nullptr, "name", "auto",
      "how teams synchronise: auto, gba, or in software one that shmem_info lists"},
     "auto, gba or one of the algorithms that shmem_info lists",
     set_barrier_algorithm},
    {{"SHMEM_BARRIER_TUNING", nullptr, "path", "",
      "the table by which auto chooses, as tune_barrier writes it; built in if not set"},
     "a path",
     set_text<&Options::barrier_tuning>},
    {{"SHMEM_COLLECTIVE_TUNING", nullptr, "path", "",
      "the table by which collectives choose their way, as tune_collective writes it; built in if not set"},
     "a path",
     set_text<&Options::collective_tuning>},
    {{"SHMEM_BARRIER_RADIX", nullptr, "number", "8",
      "npu_v2: one more than the PEs that each tells in a phase; npu_v3: cores that read, at most"},
     "a number from 2 to 8",
     set_between<&Options::barrier_radix, 2, kMostRadix>},
    {{"SHMEM_BARRIER_GROUP", nullptr, "number", "0",
      "hierarchical: so many neighbours are a group, of a socket or a host for instance; 0: the whole team is one"},
     "a number, 0 or more",
     set_between<&Options::barrier_group, 0, std::numeric_limits<int>::max()>},
    {{"SHMEM_BARRIER_TIMEOUT", nullptr, "seconds", "0",
      "a barrier or a wait for a word that takes longer fails; 0: none does"},
     "a number of seconds, 0 or more",
     set_barrier_timeout},
    {{"SHMEM_BARRIER_WARN", nullptr, "seconds", "30",
      "a barrier that takes longer says for whom it waits, and again whenever twice that has passed; 0: it does not"},
     "a number of seconds, 0 or more",
     set_barrier_warning},
    {{"SHMEM_GBA", nullptr, "name", "auto", "hardware barriers: auto, off or require"},
     "auto, off or require",
     set_gba},
    {{"SHMEM_GBA_MIN_PES", nullptr, "number", "2", "smaller teams take no group of the GBA"},
     "a number from 2",
     set_between<&Options::gba_min_pes, 2, std::numeric_limits<int>::max()>},
    {{"SHMEM_GBA_SWITCH", nullptr, "text", "",
      "the switch that this node's GBA is a port of; nodes with different ones take groups on each"},
     "a text of at most 63 characters",
     set_gba_switch},
    {{"SHMEM_BOOTSTRAP", nullptr, "name", "auto",
      "how the PEs of a job find each other: auto, local (oshrun), uid (TCP), pmix (mpirun, srun) or mpi"},
     "auto, local, uid, pmix or mpi",
     set_bootstrap},
    {{"SHMEM_BOOTSTRAP_TIMEOUT", nullptr, "seconds", "120", "how long a PE waits for the others at start"},
     "a number of seconds above 0",
     set_bootstrap_timeout},
    {{"SHMEM_UID_SESSION_ID", nullptr, "address", "",
      "where PE 0 listens for the others: ip:port, [ipv6]:port or host:port"},
     "an address",
     set_text<&Options::uid_session_id>},
    {{"SHMEM_UID_SOCK_IFNAME", nullptr, "name", "",
      "the network interface to listen on: name, name:inet4 or name:inet6"},
     "the name of an interface",
     set_text<&Options::uid_sock_ifname>},
    {{"SHMEM_UID_RANK", nullptr, "number", "", "this PE's number, with SHMEM_BOOTSTRAP=uid and no launcher"},
     "a number from 0",
     set_number<&Options::uid_rank, 0>},
    {{"SHMEM_UID_SIZE", nullptr, "number", "", "the number of PEs, with SHMEM_BOOTSTRAP=uid and no launcher"},
     "a number from 1",
     set_number<&Options::uid_size, 1>},
    {{"SHMEM_UID_SECRET", nullptr, "text", "", "what PEs of one job know and others do not, with SHMEM_UID_RANK", true},
     "a text",
     set_text<&Options::uid_secret>},
    {{"SHMEM_MPI_PLUGIN", nullptr, "path", "",
      "the library that starts by MPI, if not the libshmem_bootstrap_mpi.so of libshmem itself"},
     "a path",
     set_text<&Options::mpi_plugin>},
    {{"SHMEM_HOST_ID", nullptr, "text", "",
      "PEs on one machine that have different ones reach each other by the network, as on two machines"},
     "a text",
     set_text<&Options::host_id>},
    {{"SHMEM_NETWORK_TIMEOUT", nullptr, "seconds", "0",
      "what waits longer for a PE on another node fails; 0: SHMEM_BARRIER_TIMEOUT holds"},
     "a number of seconds, 0 or more",
     set_network_timeout},
    {{"SHMEM_PROGRESS_THREAD", nullptr, "switch", "0",
      "a thread answers PEs on other nodes while the program does not call the library"},
     "anything",
     set_switch<&Options::progress_thread>},
    {{"SHMEM_TRACE", nullptr, "path", "",
      "a file for the barriers of all PEs, to be shown by Perfetto or chrome://tracing"},
     "the path of a file",
     set_text<&Options::trace>},
    {{"SHMEM_CYCLE_PROF_PE", nullptr, "number", "",
      "the PE that measures parts of its kernels: SHMEMI_PROF_START and SHMEMI_PROF_END of aclshmem.h"},
     "a number from 0",
     set_number<&Options::cycle_prof_pe, 0>},
    {{"SHMEM_INFO", "SMA_INFO", "switch", "0", "say at start and end what was chosen and why"},
     "anything",
     set_switch<&Options::info>},
    {{"SHMEM_VERSION", "SMA_VERSION", "switch", "0", "print the library's version at start"},
     "anything",
     set_switch<&Options::version>},
    {{"SHMEM_DEBUG", "SMA_DEBUG", "switch", "0", "check the arguments of calls and say more on standard error"},
     "anything",
     set_switch<&Options::debug>},
});

constexpr auto kSpecs = [] {
  std::array<OptionSpec, kTable.size()> specs{};
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    specs[i] = kTable[i].spec;
  }
  return specs;
}();

}  // namespace

std::span<const OptionSpec> option_table() {
  return kSpecs;
}

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

namespace {

/// The value of one variable, put into `options` if it is set.
Setting read_one(const Entry& entry, const OptionSpec& spec, const Environment& environment, Options& options) {
  const char* name = spec.name;
  auto value = environment(name);
  if (!value && spec.old_name != nullptr) {
    name = spec.old_name;
    value = environment(name);
  }
  if (!value) {
    return {&spec, spec.initial, "default", {}};
  }
  Setting setting{&spec, spec.secret ? "..." : *value, name == spec.name ? "environment" : name, {}};
  if (!entry.set(options, *value)) {
    setting.problem =
        std::string("shmem: ") + name + "=" + setting.value + " is not " + entry.expected + " (" + spec.help + ")";
  }
  return setting;
}

}  // namespace

std::vector<Setting> read_settings(const Environment& environment) {
  Options options;
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    settings.push_back(read_one(kTable[i], kSpecs[i], environment, options));
  }
  return settings;
}

Result<Options> read_options(const Environment& environment) {
  Options options;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (auto setting = read_one(kTable[i], kSpecs[i], environment, options); setting.problem) {
      return fail(std::errc::invalid_argument, *setting.problem);
    }
  }
  return options;
}

}  // namespace shmem

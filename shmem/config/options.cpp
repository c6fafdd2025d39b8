// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/number.hpp"

namespace shmem {
namespace {

using Setter = bool (*)(Options&, const std::string&);

struct Entry {
  OptionSpec spec;
  const char* expected;
  Setter set;
};

using base::number;

// OpenSHMEM 1.6, section 8: a number, also a fraction, and one of k K m M g G t T. At least one byte: the heap has
// whole pages anyway.
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
  if (!value || !(*value >= 0) || *value * scale >= 0x1p63) {
    return false;
  }
  options.symmetric_size = std::max<std::size_t>(static_cast<std::size_t>(std::ceil(*value * scale)), 1);
  return true;
}

/// Sets `target` to the enumerator whose name is `text`. `names` are in the order of the enumerators.
template <typename Enum, std::size_t N>
bool set_by_name(Enum& target, const std::string& text, const std::array<std::string_view, N>& names) {
  const auto* const found = std::ranges::find(names, text);
  target = static_cast<Enum>(found - names.begin());
  return found != names.end();
}

bool set_symmetric_globals(Options& options, const std::string& text) {
  options.symmetric_globals = text == "auto";
  return text == "auto" || text == "off";
}

bool set_hugepages(Options& options, const std::string& text) {
  return set_by_name<HugePages, 4>(options.placement.pages, text, {"auto", "hugetlb", "thp", "none"});
}

bool set_numa(Options& options, const std::string& text) {
  return set_by_name<NumaPolicy, 3>(options.placement.numa, text, {"local", "interleave", "none"});
}

bool set_bootstrap(Options& options, const std::string& text) {
  return set_by_name<BootstrapKind, 5>(options.bootstrap, text.empty() ? "auto" : text,
                                       {"auto", "local", "uid", "pmix", "mpi"});
}

bool set_gba(Options& options, const std::string& text) {
  return set_by_name<GbaUse, 3>(options.gba, text, {"auto", "off", "require"});
}

bool set_network_require(Options& options, const std::string& text) {
  return set_by_name<NetworkUse, 2>(options.network_require, text, {"any", "rdma"});
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

template <std::chrono::milliseconds Options::*Member>
bool set_seconds(Options& options, const std::string& text) {
  const auto time = seconds(text);
  options.*Member = time.value_or(options.*Member);
  return time.has_value();
}

bool set_bootstrap_timeout(Options& options, const std::string& text) {
  return set_seconds<&Options::bootstrap_timeout>(options, text) && options.bootstrap_timeout.count() > 0;
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

constexpr const char* kSwitchValues = "1, on, yes or true, nor 0, off, no or false";

/// Nothing unless `text` is one of the usual words.
std::optional<bool> switch_value(const std::string& text) {
  constexpr std::array<std::string_view, 8> kWords{"0", "1", "off", "on", "no", "yes", "false", "true"};
  const auto same = [&text](std::string_view word) {
    return std::ranges::equal(text, word, {},
                              [](char letter) { return letter | (letter >= 'A' && letter <= 'Z' ? 0x20 : 0); });
  };
  const auto* const found = std::ranges::find_if(kWords, same);
  return found != kWords.end() ? std::optional((found - kWords.begin()) % 2 == 1) : std::nullopt;
}

template <bool Options::*Member>
bool set_switch(Options& options, const std::string& text) {
  const auto value = switch_value(text);
  options.*Member = value.value_or(false);
  return value.has_value();
}

constexpr const char* kAnyValue = "a value";

/// OpenSHMEM 1.6, section 8: any value sets it. Here the words that say "off" do not.
template <bool Options::*Member>
bool set_by_any_value(Options& options, const std::string& text) {
  options.*Member = switch_value(text).value_or(true);
  return true;
}

bool set_info(Options& options, const std::string& text) {
  options.info_json = text == "json";
  return set_by_any_value<&Options::info>(options, text);
}

constexpr auto kTable = std::to_array<Entry>({
    {{"SHMEM_CONFIG_FILE", nullptr, "path", "",
      "a file of lines NAME = VALUE for these variables, or none; if it is not set, /etc/libshmem.conf and "
      "~/.config/libshmem.conf",
      "The environment has precedence over the files, and the second file over the first. A program that is "
      "set-user-ID, or gives capabilities, reads /etc/libshmem.conf only."},
     "a path or none",
     set_text<&Options::config_file>},
    {{"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "size", "1G", "bytes of symmetric heap per PE; k, m, g, t multiply",
      "Fractions are allowed. The size is rounded up to whole pages, at least one. Memory is allocated when it "
      "is first used."},
     "a number, 0 or more, optionally followed by k, m, g or t, and less than 2^63 bytes",
     set_symmetric_size},
    {{"SHMEM_SYMMETRIC_GLOBALS", nullptr, "name", "auto",
      "whether global and static variables are symmetric: auto (where they can be) or off"},
     "auto or off",
     set_symmetric_globals},
    {{"SHMEM_SYMMETRIC_GLOBALS_SKIP", nullptr, "names", "",
      "libraries whose variables are not symmetric: the beginnings of their names, separated by commas",
      "For runtimes in the program's own folders whose threads run before shmem_init. Those of compilers, "
      "OpenMP, TBB, MKL, MPI, UCX and CANN are known."},
     "a list of names",
     set_text<&Options::symmetric_globals_skip>},
    {{"SHMEM_HUGEPAGES", nullptr, "name", "auto", "pages of the symmetric heaps: auto, hugetlb, thp or none",
      "auto and hugetlb: huge pages of the pool if it has enough for all heaps of the node, else as thp. thp: "
      "transparent huge pages if the kernel allows them for shared memory (shmem_enabled), else small pages. "
      "none: small pages."},
     "auto, hugetlb, thp or none",
     set_hugepages},
    {{"SHMEM_NUMA", nullptr, "name", "local",
      "where a PE's symmetric heap lies: local (on the PE's node), interleave or none"},
     "local, interleave or none",
     set_numa},
    {{"SHMEM_BARRIER_ALGORITHM", nullptr, "name", "auto",
      "how teams synchronise: auto, gba, or in software one that shmem_info lists",
      "On several nodes it is used on each node and, by messages, between the nodes; npu_v1 replaces dissemination "
      "between nodes."},
     "auto, gba or one of the algorithms that shmem_info lists",
     set_barrier_algorithm},
    {{"SHMEM_BARRIER_TUNING", nullptr, "path", "",
      "the table by which auto chooses in software, on a node and between nodes, as tune_barrier writes it, or "
      "built-in",
      "If it is not set and each PE has a processor of its own, teams measure a few algorithms when they are "
      "created, in at most 200 us. "
      "built-in: the built-in table, without measurements."},
     "a path",
     set_text<&Options::barrier_tuning>},
    {{"SHMEM_COLLECTIVE_TUNING", nullptr, "path", "",
      "the table by which collectives choose their way, as tune_collective writes it",
      "If it is not set, the built-in table. shmem_info lists the ways and prints the table in force."},
     "a path",
     set_text<&Options::collective_tuning>},
    {{"SHMEM_BARRIER_RADIX", nullptr, "number", "8",
      "npu_v2: one more than the PEs that each signals per phase; npu_v3: the most cores that read"},
     "a number from 2 to 8",
     set_between<&Options::barrier_radix, 2, kMostRadix>},
    {{"SHMEM_BARRIER_GROUP", nullptr, "number", "8", "hierarchical: PEs per group, whose first one is its leader"},
     "a number, 1 or more",
     set_between<&Options::barrier_group, 1, std::numeric_limits<int>::max()>},
    {{"SHMEM_BARRIER_TIMEOUT", nullptr, "seconds", "0",
      "seconds after which a barrier or a wait for a word fails; 0: no limit",
      "It aborts the job (in a kernel: returns an error from the launch) and names the missing PEs."},
     "a number of seconds, 0 or more",
     set_seconds<&Options::barrier_timeout>},
    {{"SHMEM_BARRIER_WARN", nullptr, "seconds", "30",
      "seconds after which a barrier, or a wait for another node, names the missing PEs, and again after each "
      "further twice that time; 0: never",
      "The line has the team, number and algorithm, and process and host of each missing PE. A wait for a word "
      "or a lock prints the call, the word's address, its value and the comparison."},
     "a number of seconds, 0 or more",
     set_seconds<&Options::barrier_warning>},
    {{"SHMEM_GBA", nullptr, "name", "auto", "hardware barriers: auto, off or require",
      "require: end the job with the reason if the world team cannot use a GBA."},
     "auto, off or require",
     set_gba},
    {{"SHMEM_GBA_MIN_PES", nullptr, "number", "2",
      "smaller teams take no group of the GBA, of which there are 32 for all jobs"},
     "a number from 2",
     set_between<&Options::gba_min_pes, 2, std::numeric_limits<int>::max()>},
    {{"SHMEM_GBA_SWITCH", nullptr, "text", "",
      "the name of the switch of this node's GBA; nodes on different switches take a group on each",
      "The device does not identify its switch. If it is not set on any node, all nodes are on one switch."},
     "a text of at most 63 characters",
     set_gba_switch},
    {{"SHMEM_BOOTSTRAP", nullptr, "name", "auto",
      "how the PEs of a job find each other: auto, local (oshrun), uid (TCP), pmix (mpirun, srun) or mpi",
      "auto: by what started the process."},
     "auto, local, uid, pmix or mpi",
     set_bootstrap},
    {{"SHMEM_BOOTSTRAP_TIMEOUT", nullptr, "seconds", "120", "seconds that a PE waits for the others at start"},
     "a number of seconds above 0",
     set_bootstrap_timeout},
    {{"SHMEM_UID_SESSION_ID", nullptr, "address", "",
      "where PE 0 listens for the others: ip:port, [ipv6]:port or host:port"},
     "an address",
     set_text<&Options::uid_session_id>},
    {{"SHMEM_UID_SOCK_IFNAME", nullptr, "name", "",
      "the network interface to listen on: name, name:inet4 or name:inet6",
      "For shmemx_get_uniqueid, if SHMEM_UID_SESSION_ID is not set, and for shmemx_exchange_connect."},
     "the name of an interface",
     set_text<&Options::uid_sock_ifname>},
    {{"SHMEM_UID_RANK", nullptr, "number", "", "this PE's number, with SHMEM_BOOTSTRAP=uid and no launcher"},
     "a number from 0",
     set_number<&Options::uid_rank, 0>},
    {{"SHMEM_UID_SIZE", nullptr, "number", "", "the number of PEs, with SHMEM_BOOTSTRAP=uid and no launcher"},
     "a number from 1",
     set_number<&Options::uid_size, 1>},
    {{"SHMEM_UID_SECRET", nullptr, "text", "", "a secret of the PEs of one job, with SHMEM_UID_RANK",
      "Random characters. PEs prove to each other that they know it, and never send it. PEs take it out of their "
      "environment: programs that they start do not have it. Also the secret of members of exchanges "
      "(shmemx_exchange_connect).",
      true},
     "a text",
     set_text<&Options::uid_secret>},
    {{"SHMEM_MPI_PLUGIN", nullptr, "path", "",
      "the plug-in for SHMEM_BOOTSTRAP=mpi, instead of libshmem's own for the MPI that the process uses"},
     "a path",
     set_text<&Options::mpi_plugin>},
    {{"SHMEM_HOST_ID", nullptr, "text", "",
      "PEs, and members of exchanges, on one machine with different ids are on different nodes, and use the network"},
     "a text",
     set_text<&Options::host_id>},
    {{"SHMEM_EXCHANGE_DIR", nullptr, "path", "",
      "a folder in which the members of exchanges on one machine meet, also those in other namespaces, as of "
      "containers",
      "It is made if it does not exist. It must belong to this user, and no other one may write to it. Without it "
      "members meet in their network namespace."},
     "a path",
     set_text<&Options::exchange_dir>},
    {{"SHMEM_JOB_DIR", nullptr, "path", "",
      "a folder in which the PEs of a job, or the members of a group, on one machine meet, also those in other "
      "namespaces, as of containers",
      "It is made if it does not exist. It must belong to this user, and no other one may write to it. PEs that have "
      "it "
      "are on one node, share memory, and see the end of each other there. Unless SHMEM_UID_SESSION_ID is set, a job "
      "by "
      "unique id starts through it, too, without a network. PEs with and without it are on different nodes."},
     "a path",
     [](Options& options, const std::string& value) {
       options.placement.folder = value;
       return true;
     }},
    {{"SHMEM_NETWORK_REQUIRE", nullptr, "name", "any", "what PEs on different nodes may communicate by: any or rdma",
      "rdma: TCP is not used, and a job on several nodes does not start if a node has no RDMA adapter that UCX can "
      "use; the message names what it would have used."},
     "any or rdma",
     set_network_require},
    {{"SHMEM_NETWORK_TIMEOUT", nullptr, "seconds", "0",
      "seconds after which a wait for a PE on another node fails; 0: SHMEM_BARRIER_TIMEOUT counts",
      "It aborts the job and names the PE."},
     "a number of seconds, 0 or more",
     set_seconds<&Options::network_timeout>},
    {{"SHMEM_PROGRESS_THREAD", nullptr, "switch", "1",
      "in a job on several nodes, a thread answers PEs on other nodes while the program does not call the library"},
     kSwitchValues,
     set_switch<&Options::progress_thread>},
    {{"SHMEM_TRACE", nullptr, "path", "", "a file for a trace of all PEs' barriers, for Perfetto or chrome://tracing",
      "Team, number, path and last member of each barrier: about 200 bytes per barrier and PE, written once a "
      "second. Each job overwrites the file."},
     "the path of a file",
     set_text<&Options::trace>},
    {{"SHMEM_CYCLE_PROF_PE", nullptr, "number", "",
      "the PE that measures parts of its kernels: SHMEMI_PROF_START and SHMEMI_PROF_END of aclshmem.h"},
     "a number from 0",
     set_number<&Options::cycle_prof_pe, 0>},
    {{"SHMEM_INFO", "SMA_INFO", "switch", "0",
      "any value but 0, off, no or false: print at start what was chosen and why, and the variables that are set",
      "At the end, the statistics of barriers, and counts and bytes of puts, gets, atomics and collectives. json: the "
      "same as JSON, one object per line."},
     kAnyValue,
     set_info},
    {{"SHMEM_VERSION", "SMA_VERSION", "switch", "0",
      "any value but 0, off, no or false: print the library's version at start"},
     kAnyValue,
     set_by_any_value<&Options::version>},
    {{"SHMEM_DEBUG", "SMA_DEBUG", "switch", "0",
      "any value but 0, off, no or false: check the arguments of calls and print more on standard error",
      "It ends the job with a line that says what is wrong."},
     kAnyValue,
     set_by_any_value<&Options::debug>},
    {{"SHMEM_BACKTRACE", nullptr, "switch", "1",
      "a PE that ends the job by a mistake, or by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT, says where it was",
      "oshrun prints the calls with source files and lines, if the program was compiled with -g and addr2line is "
      "installed. Signals that the program handles itself are left alone."},
     kSwitchValues,
     set_switch<&Options::backtrace>},
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

/// Where values are looked up.
struct Sources {
  const Environment& environment;
  const ConfigValues& config;
};

/// A value, the name by which it was found, and where. Nothing: it is not set.
struct Found {
  std::string value;
  const char* name;
  std::string source;
  std::string place;  // before the name in messages
};

std::optional<Found> find(const OptionSpec& spec, const Sources& sources) {
  if (auto value = sources.environment(spec.name)) {
    return Found{*std::move(value), spec.name, "environment", ""};
  }
  if (auto value = spec.old_name != nullptr ? sources.environment(spec.old_name) : std::nullopt) {
    return Found{*std::move(value), spec.old_name, spec.old_name, ""};
  }
  if (const auto found = sources.config.find(spec.name); found != sources.config.end()) {
    return Found{found->second.value, spec.name, found->second.source, found->second.source + ": "};
  }
  return std::nullopt;
}

/// Reads one variable into `options` if it is set.
Setting read_one(const Entry& entry, const OptionSpec& spec, const Sources& sources, Options& options) {
  const auto found = find(spec, sources);
  if (!found) {
    return {&spec, spec.initial, kFromDefault, {}};
  }
  Setting setting{&spec, spec.secret ? "..." : found->value, found->source, {}};
  if (!entry.set(options, found->value)) {
    setting.problem = fmt::format("shmem: {}{}={} is not {} ({})", found->place, found->name, setting.value,
                                  entry.expected, spec.help);
  }
  return setting;
}

}  // namespace

std::vector<Setting> read_settings(const Environment& environment, const ConfigValues& config) {
  Options options;
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    settings.push_back(read_one(kTable[i], kSpecs[i], {environment, config}, options));
  }
  return settings;
}

Result<Options> read_options(const Environment& environment, const ConfigValues& config) {
  Options options;
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (auto setting = read_one(kTable[i], kSpecs[i], {environment, config}, options); setting.problem) {
      return fail(std::errc::invalid_argument, *setting.problem);
    }
  }
  return options;
}

}  // namespace shmem

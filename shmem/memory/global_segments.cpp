// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/global_segments.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string_view>

#include "base/hash.hpp"

namespace shmem {

namespace {

/// The loader gives addresses as numbers.
std::byte* pointer(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// An executable or library as loaded.
struct Object {
  std::string path;  // "" for the executable
  std::string soname;
  std::vector<std::string> needed;
  ElfW(Addr) base = 0;
  const ElfW(Phdr) * headers = nullptr;
  std::size_t header_count = 0;

  [[nodiscard]] std::byte* at(ElfW(Addr) address) const { return pointer(base + address); }
};

void read_dynamic(Object& object, const ElfW(Dyn) * dynamic) {
  const char* strings = nullptr;
  for (const auto* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_STRTAB) {
      continue;
    }
    // glibc has added the base if it can write there.
    const ElfW(Addr) address = entry->d_un.d_ptr;
    strings = reinterpret_cast<const char*>(pointer(address < object.base ? object.base + address : address));
  }
  if (strings == nullptr) {
    return;
  }
  for (const auto* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED) {
      object.needed.emplace_back(strings + entry->d_un.d_val);
    }
    if (entry->d_tag == DT_SONAME) {
      object.soname = strings + entry->d_un.d_val;
    }
  }
}

int add_object(dl_phdr_info* info, std::size_t /*size*/, void* objects) {
  Object object;
  object.path = info->dlpi_name;
  object.base = info->dlpi_addr;
  object.headers = info->dlpi_phdr;
  object.header_count = info->dlpi_phnum;
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const auto& header = object.headers[i];
    if (header.p_type == PT_DYNAMIC) {
      read_dynamic(object, reinterpret_cast<const ElfW(Dyn)*>(object.at(header.p_vaddr)));
    }
  }
  if (object.soname.empty()) {
    object.soname = object.path.substr(object.path.rfind('/') + 1);
  }
  static_cast<std::vector<Object>*>(objects)->push_back(std::move(object));
  return 0;
}

/// The executable, then the program's own libraries, by their distance from it.
std::vector<Object> own_objects(const std::string& skip) {
  std::vector<Object> loaded;
  ::dl_iterate_phdr(add_object, &loaded);
  if (loaded.empty()) {
    return {};
  }
  std::vector<Object> own{loaded.front()};
  for (std::size_t next = 0; next < own.size(); ++next) {
    const std::vector<std::string> needed = own[next].needed;
    for (const auto& name : needed) {
      const auto is_named = [&](const Object& object) { return object.soname == name || object.path == name; };
      const auto found = std::find_if(loaded.begin() + 1, loaded.end(), is_named);
      if (found == loaded.end() || is_runtime(found->path, found->soname) || is_listed(skip, found->soname)) {
        continue;
      }
      if (std::none_of(own.begin(), own.end(), is_named)) {
        own.push_back(*found);
      }
    }
  }
  return own;
}

std::uintptr_t down_to_page(std::uintptr_t address) {
  return address & ~(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
}

std::uintptr_t up_to_page(std::uintptr_t address) {
  return down_to_page(address + static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
}

std::vector<GlobalRange> ranges_of(const Object& object) {
  std::vector<GlobalRange> ranges;
  const ElfW(Phdr)* relro = nullptr;
  for (std::size_t i = 0; i < object.header_count; ++i) {
    if (object.headers[i].p_type == PT_GNU_RELRO) {
      relro = &object.headers[i];
    }
  }
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const auto& header = object.headers[i];
    // Shared memory in place of a segment with code would not be executable.
    if (header.p_type != PT_LOAD || (header.p_flags & (PF_W | PF_X)) != PF_W) {
      continue;
    }
    const auto start = reinterpret_cast<std::uintptr_t>(object.at(header.p_vaddr));
    const std::uintptr_t begin = down_to_page(start);
    const GlobalRange whole{pointer(begin), up_to_page(start + header.p_memsz) - begin,
                            start - begin + header.p_filesz};
    // The loader protects whole pages only: the last one stays writable if it is not full.
    const auto pieces = relro == nullptr
                            ? std::vector{whole}
                            : without(whole, pointer(down_to_page(object.base + relro->p_vaddr)),
                                      pointer(down_to_page(object.base + relro->p_vaddr + relro->p_memsz)));
    ranges.insert(ranges.end(), pieces.begin(), pieces.end());
  }
  return ranges;
}

using base::Fnv;

/// False if the linker left no build id.
bool add_build_id(const Object& object, Fnv& hash) {
  constexpr std::string_view kOwner{"GNU\0", 4};
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const auto& header = object.headers[i];
    if (header.p_type != PT_NOTE) {
      continue;
    }
    const std::size_t alignment = header.p_align == 8 ? 8 : 4;
    const auto padded = [&](std::size_t size) { return (size + alignment - 1) & ~(alignment - 1); };
    for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= header.p_memsz;) {
      const std::byte* data = object.at(header.p_vaddr) + at;
      ElfW(Nhdr) note;
      std::memcpy(&note, data, sizeof(note));
      const auto* name = reinterpret_cast<const char*>(data + sizeof(note));
      if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == kOwner) {
        hash.add(name + padded(note.n_namesz), note.n_descsz);
        return true;
      }
      at += sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    }
  }
  return false;
}

/// Code and constants, as far as they can be hashed quickly.
void add_contents(const Object& object, Fnv& hash) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  for (std::size_t i = 0; i < object.header_count; ++i) {
    const auto& header = object.headers[i];
    if (header.p_type != PT_LOAD || (header.p_flags & (PF_W | PF_R)) != PF_R) {
      continue;
    }
    hash.add(header.p_filesz);
    hash.add(object.at(header.p_vaddr), std::min<std::size_t>(header.p_filesz, kMost));
  }
}

}  // namespace

std::size_t GlobalImage::size() const {
  return std::accumulate(ranges.begin(), ranges.end(), std::size_t{0},
                         [](std::size_t sum, const GlobalRange& range) { return sum + range.size; });
}

std::vector<GlobalRange> without(const GlobalRange& range, const std::byte* hole, const std::byte* hole_end) {
  const std::byte* const end = range.begin + range.size;
  const auto piece = [&](const std::byte* from, const std::byte* to) {
    const auto skipped = static_cast<std::size_t>(from - range.begin);
    const auto size = static_cast<std::size_t>(to - from);
    const std::size_t initialized = range.initialized > skipped ? range.initialized - skipped : 0;
    return GlobalRange{range.begin + skipped, size, std::min(size, initialized)};
  };
  std::vector<GlobalRange> pieces;
  if (hole >= hole_end || hole >= end || hole_end <= range.begin) {
    return {piece(range.begin, end)};
  }
  if (hole > range.begin) {
    pieces.push_back(piece(range.begin, hole));
  }
  if (hole_end < end) {
    pieces.push_back(piece(hole_end, end));
  }
  return pieces;
}

Result<void> check_untouched(const std::vector<GlobalRange>& ranges) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    std::array<char, 5> access{};  // "rw-p": read, write, no execute, private
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access.data()) != 3) {
      continue;
    }
    const auto overlaps = [&](const GlobalRange& range) {
      const auto first = reinterpret_cast<std::uintptr_t>(range.begin);
      return begin < first + range.size && first < end;
    };
    if (std::string_view(access.data()) != "rw-p" && std::any_of(ranges.begin(), ranges.end(), overlaps)) {
      return fail(std::errc::bad_address, "the program has protected or mapped a part of its data itself: " + line);
    }
  }
  return {};
}

bool is_runtime(const std::string& path, const std::string& name) {
  constexpr std::array<std::string_view, 9> kSystem{
      "/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libx32/", "linux-"};
  constexpr std::array<std::string_view, 40> kRuntimes{
      // Of the system and the compilers.
      "ld-", "libc.", "libm.", "libmvec.", "libpthread.", "libdl.", "librt.", "libutil.", "libresolv.", "libstdc++.",
      "libgcc_s.", "libc++", "libgomp.", "libomp.", "libatomic.", "libgfortran.", "libquadmath.", "libunwind.",
      // Of threads and mathematics, and of Ascend's CANN: their own threads use their data.
      "libiomp5.", "libtbb", "libmkl_", "libascendcl.", "libruntime.", "libhccl",
      // Sanitizers.
      "libasan.", "libtsan.", "libubsan.", "liblsan.", "libhwasan.", "libclang_rt.",
      // Our own, and those of other message-passing systems.
      "libshmem", "libgba.", "libkvexchange.", "libmpi", "libopen-", "libpmix.", "libucp.", "libucs.", "libuct.",
      "libucm."};
  const auto begins = [](const std::string& text) {
    return [&text](std::string_view start) { return text.compare(0, start.size(), start) == 0; };
  };
  return std::any_of(kSystem.begin(), kSystem.end(), begins(path)) ||
         std::any_of(kRuntimes.begin(), kRuntimes.end(), begins(name));
}

bool is_listed(const std::string& list, const std::string& name) {
  constexpr const char* kSeparators = ",: ";
  for (std::size_t begin = list.find_first_not_of(kSeparators); begin != std::string::npos;) {
    const std::size_t end = std::min(list.find_first_of(kSeparators, begin), list.size());
    if (name.compare(0, end - begin, list, begin, end - begin) == 0) {
      return true;
    }
    begin = list.find_first_not_of(kSeparators, end);
  }
  return false;
}

GlobalImage find_globals(const std::string& skip) {
  GlobalImage image;
  Fnv hash;
  for (const Object& object : own_objects(skip)) {
    hash.add(object.soname.data(), object.soname.size());
    if (!add_build_id(object, hash)) {
      add_contents(object, hash);
    }
    for (const GlobalRange& range : ranges_of(object)) {
      hash.add(reinterpret_cast<std::uintptr_t>(range.begin) - object.base);
      hash.add(range.size);
      image.ranges.push_back(range);
    }
  }
  image.identity = hash.value();
  return image;
}

}  // namespace shmem

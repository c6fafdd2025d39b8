#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
Usage: scripts/lint.sh BUILD_DIR

Checks every tracked source file: its SPDX line, its format (clang-format), and its layer, braces
and line lengths (scripts/check-sources.py). Runs clang-tidy on the sources that BUILD_DIR compiles,
each of them alone, and, if it is installed, shellcheck on the scripts. Exits with 0 if all checks
pass.
TEXT
}

sources() {
  git ls-files -z -- '*.c' '*.h' '*.cc' '*.cpp' '*.hpp'
}

shell_scripts() {
  git ls-files -z -- '*.sh' .ci/run
}

check_spdx() {
  local -a missing
  mapfile -t missing < <(git ls-files -z -- '*.c' '*.h' '*.cc' '*.cpp' '*.hpp' '*.sh' '*.cmake' '*.py' '*.rules.in' \
    'CMakeLists.txt' '*/CMakeLists.txt' .ci/run |
    while IFS= read -r -d '' file; do
      head -n 2 -- "$file" | grep -qE '^(//|#|/\*) SPDX-License-Identifier: Apache-2\.0' || echo "$file"
    done)
  [[ ${#missing[@]} -eq 0 ]] || {
    printf '%s: no SPDX-License-Identifier: Apache-2.0 in the first two lines\n' "${missing[@]}" >&2
    return 1
  }
}

check_format() {
  sources | xargs -0 -r "$(versioned_program clang-format)" --dry-run -Werror
}

# With the settings of the build folder, but each file alone and without the precompiled headers, which are for g++: so each
# file must include what it uses.
check_tidy() {
  local output
  cp "$build_dir/CMakeCache.txt" "$database"
  sed -i '/^CMAKE_HOME_DIRECTORY\|^CMAKE_CACHEFILE_DIR/d' "$database/CMakeCache.txt"
  cmake -S "$ROOT" -B "$database" -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$database/cmake.log" || {
    cat "$database/cmake.log" >&2
    return 1
  }
  output="$("$(versioned_program run-clang-tidy)" -quiet -clang-tidy-binary "$(versioned_program clang-tidy)" \
    -extra-arg=-Wno-unused-command-line-argument -p "$database" -j "$(nproc)" 2>&1)" || {
    echo "$output" >&2
    return 1
  }
}

check_shell() {
  if command -v shellcheck >/dev/null; then
    shell_scripts | xargs -0 -r shellcheck -x
  else
    echo "shellcheck is not installed: scripts not checked"
  fi
}

handle_help_option "$@"
[[ $# == 1 ]] || usage_error "expected one argument, the build folder"
build_dir="$(cd "$1" 2>/dev/null && pwd)" || die "no such folder: $1"
[[ -f "$build_dir/CMakeCache.txt" ]] || die "$build_dir is not a build folder; make it first: scripts/build.sh"
database="$(mktemp -d)"
trap 'rm -rf "$database"' EXIT
cd "$ROOT"
problems=()
scripts/check-sources.py || problems+=("a layer, a brace or a long line (scripts/check-sources.py)")
check_spdx || problems+=("a file without SPDX line")
check_format || problems+=("clang-format would change a file (clang-format -i FILE fixes it)")
check_shell || problems+=("shellcheck")
check_tidy || problems+=("clang-tidy")
if [[ ${#problems[@]} -gt 0 ]]; then
  printf 'lint.sh: %s\n' "${problems[@]}" >&2
  exit 1
fi
echo "lint: clean"

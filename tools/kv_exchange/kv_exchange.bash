# SPDX-License-Identifier: Apache-2.0
# Completion of kv_exchange(1) for bash: commands, and the options that the program itself names.

_kv_exchange() {
  local word="${COMP_WORDS[COMP_CWORD]}" program="${COMP_WORDS[0]}" names
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    names="serve hold pin unpin events put get list stats top exchanges ping bench --help --version"
  elif [[ $word == -* ]]; then
    names="$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -- '^ +(-[a-z], *)?--[a-z-]+' | sed 's/.*--/--/')"
  else
    return # bash completes a file name
  fi
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
}

complete -o bashdefault -o default -F _kv_exchange kv_exchange

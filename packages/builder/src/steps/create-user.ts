// Creates users in images of any distribution: with `useradd`, with BusyBox's `adduser`, or by writing the files where there is neither.

import { SITE_VARIABLES } from "@skerry/wire";

/**
 * Arguments: the name, and "sudo" or "". Prints the name of the user that there is afterwards, and "created" before it if files were
 * changed. A number is the id of a user.
 */
export const CREATE_USER = `set -e
name=$1
home=/home/$name
number=
case $name in *[!0-9]*) ;; *) number=$name ;; esac

field() { # The name of the entry of file $1 whose field $2 is $3.
  local line fields
  [ -r "$1" ] || return 1
  while IFS= read -r line || [ -n "$line" ]; do
    IFS=: read -r -a fields <<< "$line"
    if [ "\${fields[$2]}" = "$3" ]; then echo "\${fields[0]}"; return 0; fi
  done < "$1"
  return 1
}
free_id() { # The first free id from 1000 on in the file $1.
  local id=1000
  while field "$1" 2 "$id" > /dev/null; do id=$((id + 1)); done
  echo "$id"
}
append() { # Adds a line, also to a file that does not end with one.
  [ ! -s "$1" ] || [ -z "$(tail -c 1 "$1")" ] || echo >> "$1"
  printf '%s\\n' "$2" >> "$1"
}
write_user() {
  local gid id
  gid=$(field /etc/group 0 "$name" > /dev/null && while IFS=: read -r entry _ entry_id _; do [ "$entry" = "$name" ] && echo "$entry_id" && break; done < /etc/group || true)
  if [ -z "$gid" ]; then
    gid=$(free_id /etc/group)
    append /etc/group "$name:x:$gid:"
  fi
  id=\${number:-$(free_id /etc/passwd)}
  append /etc/passwd "$name:x:$id:$gid::$home:/bin/bash"
  if [ -e /etc/shadow ]; then append /etc/shadow "$name:!:19000:0:99999:7:::"; fi
  if [ ! -d "$home" ]; then
    mkdir -p "$home"
    [ ! -d /etc/skel ] || cp -R /etc/skel/. "$home"/
    chown -R "$id:$gid" "$home"
  fi
}

created=
if [ -n "$number" ]; then
  known=$(field /etc/passwd 2 "$number" || true)
  if [ -n "$known" ]; then name=$known; else name=user$number; home=/home/$name; fi
fi
if ! id -u "$name" > /dev/null 2>&1 && ! field /etc/passwd 0 "$name" > /dev/null; then
  created=1
  if command -v useradd > /dev/null; then useradd --create-home --shell /bin/bash \${number:+--uid "$number"} "$name"
  elif command -v adduser > /dev/null && adduser --help 2>&1 | grep -q BusyBox; then adduser -D -s /bin/bash \${number:+-u "$number"} "$name"
  else write_user
  fi
fi
if [ "$2" = sudo ] && [ ! -e "/etc/sudoers.d/$name" ]; then
  created=1
  mkdir -p /etc/sudoers.d
  printf 'Defaults:%s env_keep += "${SITE_VARIABLES.join(" ")}"\\n%s ALL=(ALL:ALL) NOPASSWD: ALL\\n' "$name" "$name" > "/etc/sudoers.d/$name"
  chmod 0440 "/etc/sudoers.d/$name"
fi
[ -z "$created" ] || echo created
echo "$name"`;

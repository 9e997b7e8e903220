# For scripts that make a distribution's root file system: debian_root SUITE WORK_FOLDER [PACKAGE...] fills WORK_FOLDER/root with
# apt and the packages, from this machine's archives when they are of the same family, else from the public ones. To be sourced.

# The address of this machine's archive whose path ends in $1.
own_uri() { sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -E "/$1/?\$" | head -n 1; }

# Debian 13 has the keys of Ubuntu's archives as a package, which depends on nothing.
fetch_ubuntu_keys() {
  debian=$(own_uri debian)
  apt=$work/apt
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${debian:-http://deb.debian.org/debian} trixie main" >"$apt/sources.list"
  set -- -q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State=$apt/state" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root
  { apt-get "$@" update && (cd "$apt" && apt-get "$@" download ubuntu-keyring) && dpkg-deb -x "$apt"/ubuntu-keyring_*.deb "$work/keys"; } >"$apt/log" 2>&1 ||
    { tail -n 5 "$apt/log" >&2; echo "the keys of Ubuntu's archives can't be had: apt-get install ubuntu-keyring" >&2; return 4; }
  rm -r "$apt"
}

debian_root() {
  suite=$1 work=$2
  shift 2
  packages=$(echo "$@" | tr ' ' ,)
  case $suite in
    bookworm | trixie)
      components=main keyring=/usr/share/keyrings/debian-archive-keyring.gpg
      archive=$(own_uri debian) security=$(own_uri debian-security)
      archive=${archive:-http://deb.debian.org/debian} security=${security:-http://deb.debian.org/debian-security} ;;
    jammy | noble)
      components="main universe" keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
      archive=$(own_uri ubuntu)
      archive=${archive:-http://archive.ubuntu.com/ubuntu} security=$archive
      if [ ! -e "$keyring" ]; then
        fetch_ubuntu_keys || return
        keyring=$work/keys$keyring
      fi ;;
    *) echo "unknown suite $suite: bookworm, trixie, jammy and noble are known" >&2; return 2 ;;
  esac
  set -- --variant=apt --mode=root --quiet
  [ -z "$packages" ] || set -- "$@" "--include=$packages"
  [ -e "$keyring" ] && set -- "$@" --keyring="$keyring"
  apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until|Check-Date)' | grep -v ' "";$' >"$work/apt.conf" || :
  while IFS= read -r line; do set -- "$@" "--aptopt=$line"; done <"$work/apt.conf"
  mmdebstrap "$@" "$suite" "$work/root" "deb $archive $suite $components" "deb $archive $suite-updates $components" "deb $security $suite-security $components"
}

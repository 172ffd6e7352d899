# Sourced by scripts that need programs of Debian's: unpacks packages where nobody must be root.

# unpack_debian FOLDER PACKAGE...   brings packages, and what they need and is not installed, into FOLDER/root, and its
#                                   programs into the path. Fails where there is no apt-get or nothing can be fetched.
unpack_debian() {
  local folder=$1 apt names
  shift
  command -v apt-get >/dev/null || return
  mkdir -p "$folder"/lists/partial "$folder"/archives/partial "$folder"/root
  apt=(apt-get -q -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::Archives=archives
    -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=2 -o Debug::NoLocking=1)
  "${apt[@]}" update >"$folder/log" 2>&1 || return
  # A name with [a version] after it is installed in that version already, which will do.
  names=$("${apt[@]}" --simulate --no-install-recommends install "$@" 2>>"$folder/log" |
    awk '$1 == "Inst" && $3 !~ /^\[/ { print $2 }') || return
  # shellcheck disable=SC2086  # the names are words
  (cd "$folder/archives" && "${apt[@]}" download $names >>"$folder/log" 2>&1) || return
  for package in "$folder"/archives/*.deb; do dpkg-deb --extract "$package" "$folder/root" || return; done
  export PATH="$folder/root/usr/bin:$PATH"
  export LD_LIBRARY_PATH="$folder/root/usr/lib/$(uname -m)-linux-gnu:${LD_LIBRARY_PATH:-}"
}

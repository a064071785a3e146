#!/bin/sh
# Jupyter's part in a virtual environment: kernel/venv.sh FOLDER PACKAGE...
# Where Python or its venv module are missing, apt installs them, as it does fmt and doctest.
set -eu
folder=$1 && shift

say() { printf 'tapehead: %s\n' "$*" >&2; }

has_venv() { command -v python3 >/dev/null && python3 -c 'import ensurepip, venv' 2>/dev/null; }

install_venv() {
  if ! command -v apt-get >/dev/null; then
    say 'notebooks need Python 3.9 or newer with its venv module; no package manager that is known here'
    exit 1
  fi
  command='apt-get install -y python3-venv'
  if [ "$(id -u)" = 0 ]; then as_root=''; elif command -v sudo >/dev/null; then as_root=sudo; else
    say "notebooks need Python's venv module, and there is no sudo here; as root, run: $command"
    exit 1
  fi
  say "running: $as_root $command"
  options='-qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 --no-install-recommends'
  $as_root env DEBIAN_FRONTEND=noninteractive $command $options >&2 2>/dev/null || {
    $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive $command $options >&2
  }
}

has_venv || install_venv
[ -x "$folder/bin/pip" ] || python3 -m venv "$folder"
say "Jupyter's packages, into $folder: $*"
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-warn-script-location "$@"

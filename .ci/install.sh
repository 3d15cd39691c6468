#!/bin/sh
# Installs reconciler from this tree, or the wheel that it names: install.sh DIR [EXTRAS]. EXTRAS are names with spaces between
# them, such as 'cel msk'. Afterwards DIR/command has the command and nothing else.
#
# It runs beside a pull request, on machines that get passwords. So it imports nothing from the working directory
# or the home, has nothing of the environment but what pip needs, and runs no code that was not reviewed: every
# distribution, also the build back end, is a wheel with a hash in this tree.
set -eu

kept="PATH HOME LANG LC_ALL TMPDIR LD_LIBRARY_PATH
  http_proxy https_proxy no_proxy all_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY
  SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NETRC
  PIP_CONFIG_FILE PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_NO_INDEX PIP_FIND_LINKS PIP_TRUSTED_HOST PIP_CERT
  PIP_CLIENT_CERT PIP_PROXY PIP_KEYRING_PROVIDER PIP_CACHE_DIR PIP_NO_CACHE_DIR PIP_DEFAULT_TIMEOUT PIP_RETRIES"
if [ "${1-}" != --clean ]; then
  set -- sh "$0" --clean "$@"
  for name in $kept; do
    eval "value=\${$name-}"
    if [ -n "$value" ]; then set -- "$name=$value" "$@"; fi
  done
  exec env -i "$@"
fi
shift

if [ "$#" -lt 1 ] || [ "$#" -gt 2 ]; then
  echo "usage: install.sh DIR [EXTRAS]" >&2
  exit 64
fi
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
directory=$(cd "$1" && pwd)
extras=${2-}
set -f  # a name is no pattern
set -- --requirement "$source/.ci/requirements.txt"
for extra in $extras; do
  list="$source/.ci/requirements-$extra.txt"
  if [ ! -f "$list" ]; then
    echo "error: extra $extra: there is no list of what it needs; the extras are cel and msk" >&2
    exit 64
  fi
  set -- "$@" --requirement "$list"
done

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
cd "$elsewhere"
if ! python3 -I -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "error: python3 on the PATH is missing or older than 3.11; install Python 3.11 or newer with venv" >&2
  exit 1
fi
python3 -I -m venv --clear "$directory/venv"
pip() { "$directory/venv/bin/python" -I -m pip "$@" --quiet --no-input --disable-pip-version-check; }
pip install --require-hashes --no-deps --only-binary :all: "$@"
if [ -f "$source/.ci/wheel.txt" ]; then  # a repository that pins a wheel has no source to build
  export RECONCILER_TREE="$source"
  pip install --require-hashes --no-deps --only-binary :all: --requirement "$source/.ci/wheel.txt"
else
  pip install --no-deps --no-index --no-build-isolation "$source"
fi

mkdir -p "$directory/command"
cat > "$directory/command/reconciler" <<'COMMAND'
#!/bin/sh
exec "${0%/*}/../venv/bin/python" -I -m reconciler "$@"
COMMAND
chmod +x "$directory/command/reconciler"

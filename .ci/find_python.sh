#!/bin/sh
# Prints a Python of 3.11 or newer that can make environments: find_python.sh [PYTHON]. Unless one is named, that is
# python3 of the PATH, or else the newest one there. If there is none, it says on stderr what it found, and what to do.
set -u
named=$#
[ "$named" -gt 0 ] || set -- python3 python3.14 python3.13 python3.12 python3.11

asks='
import sys
version = "%d.%d" % sys.version_info[:2]
try:
    import ensurepip, venv
    lacks = ""
except ImportError:
    lacks = " without venv; on Debian and Ubuntu, install python" + version + "-venv"
print("good" if sys.version_info >= (3, 11) and not lacks else "is " + version + lacks)
'
found=
for name; do
  if ! path=$(command -v "$name"); then
    [ "$named" -eq 0 ] || found="$found  $name: there is no such program
"
    continue
  fi
  said=$("$path" -I -c "$asks" 2>&1) || said="does not run: $(printf '%s\n' "$said" | head -n 1)"
  if [ "$said" = good ]; then
    printf '%s\n' "$path"
    exit 0
  fi
  found="$found  $path $said
"
done

{
  echo "error: this needs Python 3.11 or newer, with venv. Nothing was downloaded or installed."
  if [ -n "$found" ]; then
    echo "What was found:"
    printf '%s' "$found"
  else
    echo "No python3 is on the PATH."
  fi
  echo "Install one, such as with 'apt install python3.11-venv', 'dnf install python3.11' or 'brew install python@3.13',"
  echo "or name one that is not on the PATH: make PYTHON=/path/to/python3.11 …"
} >&2
exit 1

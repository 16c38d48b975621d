#!/usr/bin/env bash
# The outputs of an ARM64 processor and of this machine, compared (same_output.py): Python of Debian for ARM64, the wheels of
# what bellapy needs, and qemu's emulation of one process. Nothing of it is installed on this machine.
#
#   apt install qemu-user-static debootstrap
#   benchmarks/arm64.sh FOLDER      # 1.5 GB there, and about 45 minutes of one core; may be called again after a stop
#
# PYTHON names a Python with bellapy, python3 unless given.
set -euo pipefail
[ $# = 1 ] || { echo "usage: benchmarks/arm64.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(realpath "$1") here=$(dirname "$(realpath "$0")") python=${PYTHON:-python3}
root=$folder/root modules=$folder/modules

if [ ! -x "$root/usr/bin/python3.11" ]; then
  debootstrap --arch=arm64 --foreign --variant=minbase --include=python3 bookworm "$root" http://deb.debian.org/debian
  for package in "$root"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
fi
if [ ! -d "$modules" ]; then
  platforms=(--platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64)
  "$python" -m pip install -q --only-binary=:all: "${platforms[@]}" --python-version 3.11 --implementation cp \
    --target "$modules.new" 'numba>=0.60,<0.70' numpy scipy pysam pyfastx rich typer zstandard isal
  mv "$modules.new" "$modules"
fi

"$python" "$here/same_output.py" -o "$folder/here.tsv"
cat >"$folder/bellapy" <<END
#!/bin/sh
export PYTHONPATH='${here%/*}:$modules' NUMBA_CACHE_DIR='$folder/compiled' PYTHONDONTWRITEBYTECODE=1
exec qemu-aarch64-static -L '$root' '$root/usr/bin/python3.11' -m bellapy "\$@"
END
chmod +x "$folder/bellapy"
"$python" "$here/same_output.py" -t 1 --program "'$folder/bellapy'" --against "$folder/here.tsv"

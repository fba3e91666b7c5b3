#!/bin/sh
# Makes the PTX of attention.py and kernels.tsv anew in a throw-away environment.
# Triton is pinned: another version makes other text. Neither torch nor a GPU is needed.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"${PYTHON:-python3}" -m venv "$room/environment"
"$room/environment/bin/pip" install --quiet --disable-pip-version-check triton==3.6.0
mkdir "$room/made"
TMPDIR=$room PYTHONDONTWRITEBYTECODE=1 "$room/environment/bin/python" "$folder/build.py" "$room/made" >"$room/log" || { cat "$room/log"; exit 1; }
rm -f "$folder"/*.ptx "$folder/kernels.tsv"
cp "$room"/made/* "$folder"
echo "ok: $(ls "$room/made" | grep -c ptx) kernels, $(cat "$room"/made/*.ptx | wc -c) bytes"

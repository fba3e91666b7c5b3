#!/bin/sh
# Makes the PTX of all kernels anew in a throw-away environment: of CUDA C++ by
# NVRTC, of attention by Triton, both pinned by the hashes of their wheels.
# Neither torch nor a GPU is needed.
#
#   make.sh          writes it beside the sources
#   make.sh check    fails where what is there is not what the sources make
#
# A check is skipped, in words, where there is no Python that the wheels are for, or
# no registry of wheels to be reached.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-write}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT

lacking() {
	if [ "$mode" = check ]; then
		echo "skipped: PTX is not held to its sources ($1)"
		exit 0
	fi
	echo "the kernels cannot be compiled: $1" >&2
	exit 1
}

"${PYTHON:-python3}" -m venv "$room/environment" >"$room/log" 2>&1 || lacking "no Python with venv: ${PYTHON:-python3}"
"$room/environment/bin/python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || lacking "Python 3.10 to 3.14 is what the wheels are for"
pip() { "$room/environment/bin/pip" "$@" --quiet --disable-pip-version-check --retries 2 >"$room/log" 2>&1; }
pip install --require-hashes --only-binary=:all: -r "$here/requirements.txt" || {
	said=$(grep -v '^$' "$room/log" | tail -n 1)
	pip download --no-deps --dest "$room/log.d" pip || lacking "pip reaches no registry: $said"
	echo "the kernels cannot be compiled: pip: $said" >&2
	exit 1
}
mkdir "$room/source" "$room/attention"
export TMPDIR="$room" PYTHONDONTWRITEBYTECODE=1
"$room/environment/bin/python" "$here/../source/compile.py" "$room/source"
"$room/environment/bin/python" "$here/../attention/build.py" "$room/attention" >"$room/log" 2>&1 || {
	cat "$room/log" >&2
	exit 1
}
for name in source attention; do
	folder=$here/../$name
	if [ "$mode" = check ]; then
		mkdir "$room/there"
		find "$folder" -name '*.ptx' -exec cp {} "$room/there" \;
		[ "$name" = source ] || cp "$folder/kernels.tsv" "$room/there"
		diff -rq "$room/there" "$room/$name" || {
			echo "$name: what is there is not what the sources make (run make kernels)" >&2
			exit 1
		}
		rm -r "$room/there"
	else
		rm -f "$folder"/*.ptx
		cp "$room/$name"/* "$folder"
	fi
	echo "ok: $name, $(find "$room/$name" -name '*.ptx' | wc -l) modules, $(cat "$room/$name"/*.ptx | wc -c) bytes of PTX"
done

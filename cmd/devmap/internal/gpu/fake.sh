#!/bin/sh
# fake.sh PART [FLAG…]: a part of gpu.py on the tests' driver, which is none (executor/internal/drivertest), with
# bin/devmap of `make cuda`: its scripts and what they judge, where there is no GPU and no PyTorch. It has no kernels,
# so that plans load and run no step; what PyTorch would do is left out by --small.
set -eu
cd "$(dirname "$0")/../../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/gpus" "$work/bin"
for library in libcuda.so.1:cuda.c libnvidia-ml.so.1:nvml.c; do
	"${CC:-cc}" -shared -fPIC -O1 -pthread -o "$work/${library%:*}" \
		-Iexecutor/cuda/internal/driver/include "executor/internal/drivertest/${library#*:}"
done
printf '#!/bin/sh\necho "NVIDIA Fake, 256 MiB, 520.61.05, 1 MHz"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
for package in torch transformers safetensors numpy; do
	mkdir "$work/$package" && : >"$work/$package/__init__.py"
done
part=$1
shift
export FAKE_CUDA_SHARED="$work/gpus" FAKE_CUDA_GPUS=1 FAKE_CUDA_BYTES=268435456 PYTHONDONTWRITEBYTECODE=1
PATH="$work/bin:$PATH" LD_LIBRARY_PATH="$work" PYTHONPATH="$work" \
	"${PYTHON:-python3}" cmd/devmap/internal/gpu/gpu.py bin/devmap --part "$part" --small "$@"

"""Compiles the kernels of this folder to PTX in another, by NVRTC 11.8 and without
a GPU: python compile.py FOLDER (make kernels does it, in an environment of its own)

One .ptx for each .cu, for sm_80 and newer, in PTX ISA 7.8: what the driver of
CUDA 11.8 and every later one takes. A source whose name ends in _90 is for sm_90 and
newer, and its instructions are of PTX ISA 8.0, CUDA 12's. The same text each time.
"""

import ctypes
import pathlib
import sys
import nvidia.cuda_nvrtc

HERE = pathlib.Path(__file__).parent
OPTIONS = ["--fmad=false", "--std=c++17", "--device-as-default-execution-space", "--no-source-include"]


def library():
    """libnvrtc, which finds its builtins beside itself."""
    folder = pathlib.Path(list(nvidia.cuda_nvrtc.__path__)[0]) / "lib"
    for name in sorted(folder.glob("libnvrtc-builtins.so*")):
        ctypes.CDLL(str(name), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(folder / "libnvrtc.so.11.2"))


def compile(nvrtc, source, *words):
    """The PTX of a source, ending in a newline. words are more options."""
    program = ctypes.c_void_p()
    text = source.read_bytes()
    hopper = source.stem.endswith("_90")
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None)
    words = [f"--gpu-architecture=compute_{90 if hopper else 80}", *OPTIONS, f"--include-path={source.parent}", *words]
    options = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    failed = nvrtc.nvrtcCompileProgram(program, len(words), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if log.value.strip():
        print(log.value.decode(), file=sys.stderr)
    if failed:
        sys.exit(f"{source.name}: nvrtc says {failed}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    made = ptx.value.decode().strip() + "\n"
    return made.replace(".version 7.8", ".version 8.0", 1) if hopper else made  # NVRTC 11.8 has inline assembly as it is


def main(folder):
    nvrtc = library()
    for source in sorted(HERE.glob("*.cu")):
        (folder / source.with_suffix(".ptx").name).write_text(compile(nvrtc, source))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

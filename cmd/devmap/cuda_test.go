//go:build cuda && linux && cgo && amd64

package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakeDriver builds the libraries of a fake driver and returns their folder.
func fakeDriver(t *testing.T, flags ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	sources := filepath.Join("..", "..", "executor", "internal", "drivertest")
	for library, source := range map[string]string{"libcuda.so.1": "cuda.c", "libnvidia-ml.so.1": "nvml.c"} {
		build := exec.Command("cc", append(flags, "-shared", "-fPIC", "-O1", "-pthread", "-o", filepath.Join(folder, library),
			"-I"+filepath.Join("..", "..", "executor", "cuda", "internal", "driver", "include"), filepath.Join(sources, source))...)
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return folder
}

// TestCUDAScripts runs the command as users with two GPUs do, on a fake driver. That driver has no
// kernels, so plans load weights and run no step. A second fake driver lacks an entry point, like
// an old driver.
func TestCUDAScripts(t *testing.T) {
	folder, old := fakeDriver(t), fakeDriver(t, "-DcuMemAddressReserve=later")
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "cuda"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status},
		Setup: func(env *testscript.Env) error {
			env.Setenv("LD_LIBRARY_PATH", folder)
			env.Setenv("OLD_DRIVER", old)
			env.Setenv("FAKE_CUDA_GPUS", "2")
			return nil
		},
	})
}

// TestNoGPULibraryIsLinked: the command with the GPU backend starts without any GPU library, and
// has none of their symbols.
func TestNoGPULibraryIsLinked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // opened for reading
	libraries, err := file.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range libraries {
		if regexp.MustCompile(`cuda|nvidia|cublas|nvrtc`).MatchString(name) {
			t.Errorf("%s is linked", name)
		}
	}
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, symbol := range symbols {
		if regexp.MustCompile(`^(cu|nvml|cublas|cublasLt)[A-Z]`).MatchString(symbol.Name) {
			t.Errorf("the loader is to find %s in %q", symbol.Name, symbol.Library)
		}
	}
	if len(libraries) == 0 || len(symbols) == 0 {
		t.Errorf("%v, %d symbols: the binary says nothing", libraries, len(symbols))
	}
}

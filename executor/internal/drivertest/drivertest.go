// Package drivertest runs tests on a fake driver and its NVML. The GPUs are in the host's memory,
// and their streams run late and in a random order.
package drivertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Main is a package's TestMain. It builds the driver's libraries and starts the test program again,
// with these first in the loader's search. So tests find a driver as users do. With DEVMAP_TEST_GPU
// set, tests run on the installed driver.
func Main(m *testing.M) error {
	const mark = "FAKE_CUDA_FOLDER"
	folder := os.Getenv(mark)
	if folder == "" && os.Getenv("DEVMAP_TEST_GPU") == "" {
		return fmt.Errorf("the tests' CUDA driver: %w", again(mark))
	}
	m.Run() // the process ends with what it says
	if folder == "" {
		return nil
	}
	return os.RemoveAll(folder)
}

// again builds the libraries and replaces the process. It returns only an error.
func again(mark string) error {
	folder, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return err
	}
	_, file, _, known := runtime.Caller(0)
	if !known {
		return errors.New("the source's folder is not known")
	}
	here := filepath.Dir(file)
	for library, source := range map[string]string{"libcuda.so.1": "cuda.c", "libnvidia-ml.so.1": "nvml.c"} {
		build := exec.Command("cc", //nolint:gosec // the names are this function's own
			"-shared", "-fPIC", "-O1", "-pthread", "-o", filepath.Join(folder, library),
			"-I"+filepath.Join(here, "..", "..", "cuda", "internal", "driver", "include"), filepath.Join(here, source))
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
	}
	if err := os.Setenv("LD_LIBRARY_PATH", folder); err != nil {
		return err
	}
	if err := os.Setenv(mark, folder); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ()) //nolint:gosec // the same program again
}

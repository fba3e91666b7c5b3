// Package drivertest runs tests on a CUDA driver that is none: GPUs in the host's
// memory, whose streams run late and in an order that is drawn.
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

// Main is a package's TestMain. It builds the driver as libcuda.so.1 and begins
// the test program anew with that where the loader looks first: what finds a
// driver is as it is shipped.
func Main(m *testing.M) {
	const mark = "FAKE_CUDA_FOLDER"
	folder := os.Getenv(mark)
	if folder == "" {
		if err := again(mark); err != nil {
			fmt.Fprintln(os.Stderr, "the tests' CUDA driver:", err)
			os.Exit(1)
		}
	}
	status := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// again builds the library and replaces the process by itself.
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
	build := exec.Command("cc", "-shared", "-fPIC", "-O1", "-pthread", "-o", filepath.Join(folder, "libcuda.so.1"),
		"-I"+filepath.Join(here, "..", "driver", "include"), filepath.Join(here, "fake.c"))
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
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
	return syscall.Exec(self, os.Args, os.Environ())
}

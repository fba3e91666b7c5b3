//go:build cuda && linux && cgo && amd64

package blas

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// TestMissing: the error names what is missing. Products themselves are tested on a GPU
// (executor/cuda).
func TestMissing(t *testing.T) {
	err := load([]string{"libnone.so.7", "libm.so.6"})
	if err == nil || !strings.Contains(err.Error(), "libnone.so.7") || !strings.Contains(err.Error(), "libm.so.6 has no cublasLtCreate") {
		t.Errorf("%v", err)
	}
}

func TestAlignment(t *testing.T) {
	for address, want := range map[driver.Address]uint32{0x100: 256, 0x7f0000000200: 256, 0x110: 16, 0x102: 2, 0x10c: 4} {
		if got := alignment(address); got != want {
			t.Errorf("%x is aligned to %d, want %d", address, got, want)
		}
	}
}

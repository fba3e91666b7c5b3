//go:build !(cuda && linux && cgo && amd64)

package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda"
)

// A build without CUDA says what it is, and how to get the other.
func TestWithoutCUDA(t *testing.T) {
	backend, err := cuda.New(executor.GPUOptions{})
	if backend != nil || err == nil || !strings.Contains(err.Error(), "no CUDA support; run make cuda") {
		t.Errorf("%v, %v", backend, err)
	}
	if found, err := cuda.GPUs(); found != nil || !errors.Is(err, executor.ErrNotBuilt) {
		t.Errorf("%v, %v", found, err)
	}
}

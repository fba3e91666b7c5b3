//go:build !unix

package cpu

import (
	"errors"
	"fmt"
	"runtime"
)

func reserve(int64) ([]byte, error) {
	return nil, fmt.Errorf("%w: arenas are mapped as Unix does, and %s does not: run on Linux or macOS, under Windows in WSL", errors.ErrUnsupported, runtime.GOOS)
}

func release([]byte) error { return nil }

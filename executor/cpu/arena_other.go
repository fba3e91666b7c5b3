//go:build !unix

package cpu

import (
	"errors"
	"runtime"
)

func reserve(int64) ([]byte, error) {
	return nil, errors.New("arenas are mapped as Unix does, which " + runtime.GOOS + " does not: run on Linux or macOS, under Windows in WSL")
}

func release([]byte) error { return nil }

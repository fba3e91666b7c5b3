//go:build !linux

package weights

import (
	"errors"
	"io/fs"
	"os"
)

func openUnnamed(folder string, mode fs.FileMode) (handle *os.File, temporary string, err error) {
	return openNamed(folder, mode)
}

func name(*os.File, string) error { return errors.ErrUnsupported }

func reserve(handle *os.File, size int64) error { return handle.Truncate(size) }

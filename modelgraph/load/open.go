package load

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// openRegular opens a regular file of the user, also through links. It refuses anything else before
// opening it.
func openRegular(path string) (*os.File, int64, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, 0, err
	}
	f, info, err := safetensors.OpenBeneath(filepath.Dir(target), filepath.Base(target))
	if err != nil {
		return nil, 0, &openError{path, filepath.Base(target), err}
	}
	return f, info.Size(), nil
}

// openError is an error of a file that was opened by the last part of its path. It has the whole
// path that the user gave.
type openError struct {
	path, last string
	err        error
}

// Error implements error.
func (err *openError) Error() string {
	if rest, found := strings.CutPrefix(err.err.Error(), err.last+": "); found {
		return err.path + ": " + rest
	}
	return err.err.Error()
}

// Unwrap returns the error of opening.
func (err *openError) Unwrap() error { return err.err }

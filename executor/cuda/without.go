//go:build !(cuda && linux && cgo && amd64)

package cuda

import (
	"errors"

	"github.com/devmap-dev/devmap/executor"
)

// New refuses: this is a build without CUDA.
func New(options Options) (executor.Backend, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	return nil, errors.New("this devmap was built without CUDA: build it with go build -tags cuda, on Linux for x86-64 with a C compiler")
}

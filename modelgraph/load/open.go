package load

import (
	"os"
	"path/filepath"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// openRegular opens a regular file that the user names, wherever a link takes
// it, and refuses anything else before opening it.
func openRegular(path string) (*os.File, int64, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, 0, err
	}
	f, info, err := safetensors.OpenBeneath(filepath.Dir(target), filepath.Base(target))
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

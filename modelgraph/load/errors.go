package load

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrUnsupported is a file in a known form that devmap does not read.
var ErrUnsupported = errors.New("is not built yet; known: model.json, config.json, .safetensors, .gguf, .onnx, a folder with them, ORG/NAME of a model in a local cache")

// unsupported returns [ErrUnsupported] for a file in a form such as HDF5.
func unsupported(path, form string) error {
	return fmt.Errorf("%s: reading %s %w", path, form, ErrUnsupported)
}

var forms = map[string]string{
	".onnx": "ONNX",
	".bin":  "PyTorch weights (pickle)", ".pt": "PyTorch weights (pickle)", ".pth": "PyTorch weights (pickle)", ".ckpt": "PyTorch weights (pickle)", ".pkl": "PyTorch weights (pickle)",
	".h5": "TensorFlow weights", ".msgpack": "Flax weights", ".npz": "NumPy weights", ".tflite": "TensorFlow Lite",
}

// formOf names the form of a file by its ending; empty if it is not known.
func formOf(name string) string { return forms[strings.ToLower(filepath.Ext(name))] }

// notFoundError is a name that is in no cache and not built in.
type notFoundError struct {
	Name  string
	Near  []string // similar built-in names, nearest first
	Fetch string   // the command that fetches its config, with a place for the name
}

// Error implements error: a line that ends in the command.
func (err *notFoundError) Error() string {
	text := err.Name + ": no such file or folder, no model of that name in a local cache, and not built in"
	if len(err.Near) > 0 {
		text += " (like it: " + strings.Join(err.Near, ", ") + ")"
	}
	name := err.Name
	if !strings.Contains(name, "/") {
		name = "ORG/" + name
	}
	return text + "; give a folder or a config.json, or fetch it: " + fmt.Sprintf(err.Fetch, name)
}

// pipelineError is a built-in diffusion pipeline in place of a model.
type pipelineError struct{ name, entry string }

// Error implements error.
func (err *pipelineError) Error() string {
	return fmt.Sprintf("%s is a built-in diffusion pipeline: devmap plan %s --gpus N plans it", err.name, err.entry)
}

// Is makes it an [ErrUnsupported].
func (*pipelineError) Is(target error) bool { return target == ErrUnsupported }

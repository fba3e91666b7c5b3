package load

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrUnsupported is a file in a form that is known and not read.
var ErrUnsupported = errors.New("is not built yet; known: model.json, config.json, .safetensors, a folder with them, ORG/NAME of a model in a local cache")

// unsupported is [ErrUnsupported] of a file in a form such as GGUF.
func unsupported(path, form string) error {
	return fmt.Errorf("%s: reading %s %w", path, form, ErrUnsupported)
}

var forms = map[string]string{
	".gguf": "GGUF", ".onnx": "ONNX",
	".bin": "PyTorch weights (pickle)", ".pt": "PyTorch weights (pickle)", ".pth": "PyTorch weights (pickle)", ".ckpt": "PyTorch weights (pickle)", ".pkl": "PyTorch weights (pickle)",
	".h5": "TensorFlow weights", ".msgpack": "Flax weights", ".npz": "NumPy weights", ".tflite": "TensorFlow Lite",
}

// formOf names the form of a file's ending, if it is known.
func formOf(name string) string { return forms[strings.ToLower(filepath.Ext(name))] }

// notFoundError is a name that is in no cache and not built in.
type notFoundError struct {
	Name   string
	Looked []string // folders that would have held it
	Near   []string // built-in names like it, nearest first
	// Base is the built-in config that the name is a tuned or packed form of by
	// its ending (-Instruct, -Chat, -AWQ); empty if there is none. Whether the
	// shape is the same is not known.
	Base string
}

// Error implements error.
func (err *notFoundError) Error() string {
	text := fmt.Sprintf("%s: no such file or folder, and no model of that name in %s or among the built-in configs", err.Name, strings.Join(err.Looked, ", "))
	if err.Base != "" {
		text += fmt.Sprintf("; did you mean %s, whose config is built in? (a tuned model most often has the shape of its base; its own config.json says)", err.Base)
	} else if len(err.Near) > 0 {
		text += "; built in: " + strings.Join(err.Near, ", ")
	}
	return text + "; give a folder or a config.json"
}

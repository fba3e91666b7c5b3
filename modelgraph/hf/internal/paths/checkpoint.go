package paths

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Bounds of a tensor name, far above any model's: paths are taken apart component by component.
const (
	maxNameBytes = 1024
	maxNameDepth = 64
)

// CheckNames refuses tensor names that are not module paths.
func CheckNames(ck *safetensors.Checkpoint) error {
	for i := range ck.Tensors {
		t := &ck.Tensors[i]
		fault := ""
		switch name := t.Name; {
		case name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
			fault = "the name is not a module path: it has an empty part"
		case len(name) > maxNameBytes || strings.Count(name, ".") >= maxNameDepth:
			fault = fmt.Sprintf("the name is longer than %d bytes or deeper than %d modules", maxNameBytes, maxNameDepth)
		}
		if fault != "" {
			return fmt.Errorf("%s: tensor %q: %s", File(ck, t), spell.Clip(t.Name), fault)
		}
	}
	return nil
}

// File is the path of a tensor's file.
func File(ck *safetensors.Checkpoint, t *safetensors.Tensor) string {
	return filepath.Join(ck.Dir, filepath.FromSlash(ck.Files[t.File]))
}

// Part is a tensor's place. File can be opened: the given folder joined with the name.
func Part(ck *safetensors.Checkpoint, t *safetensors.Tensor) modelgraph.Part {
	return modelgraph.Part{Name: t.Name, File: File(ck, t), DType: t.DType, Begin: t.Begin, End: t.End}
}

package hf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// FromSafetensors reads one file. Where it is the whole checkpoint of a folder
// that has a config.json, the folder is read ([FromFolder]). Otherwise the
// structure is read from the tensor names: a layer for each module that holds
// tensors, a wrap unit for each member of the outermost numbered lists
// (layers.0, layers.1, …), every operation opaque, in the order of the file
// with numbered units ascending. Only weights can be counted then, and a
// warning says so.
func FromSafetensors(path string) (*modelgraph.Graph, error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	reason := "there is no " + ConfigName + " beside the file"
	if _, err := os.Stat(filepath.Join(dir, ConfigName)); err == nil {
		if ck, err := safetensors.ReadFolder(dir); err == nil && len(ck.Files) == 1 && ck.Files[0].Name == base {
			g, err := FromFolder(dir)
			if err == nil {
				g.Source = path
			}
			return g, err
		}
		reason = "the file is not the whole checkpoint of its folder, whose " + ConfigName + " is not used"
	}
	h, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, err
	}
	ck := &safetensors.Checkpoint{Dir: dir, Files: []safetensors.File{{Name: base}}, Tensors: h.Tensors}
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if name == "model" {
		name = folderName(dir)
	}
	return generic(name, path, ck, reason)
}

func genericFolder(dir, reason string) (*modelgraph.Graph, error) {
	ck, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	return generic(folderName(dir), dir, ck, reason)
}

// readFolder names the folder in errors about its files.
func readFolder(dir string) (*safetensors.Checkpoint, error) {
	ck, err := safetensors.ReadFolder(dir)
	var refused *safetensors.RefusedError
	if err == nil || errors.As(err, &refused) && refused.File == dir {
		return ck, err
	}
	return nil, fmt.Errorf("%s: %w", dir, err)
}

// generic makes a graph from tensor names alone.
func generic(name, source string, ck *safetensors.Checkpoint, reason string) (*modelgraph.Graph, error) {
	if len(ck.Tensors) == 0 {
		return nil, fmt.Errorf("%s: the files hold no tensors", source)
	}
	if err := checkNames(ck); err != nil {
		return nil, err
	}
	g, err := modelgraph.New(name, newTree(ck).layers(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	g.Source, g.DType = source, mostlyFloat(g)
	g.Warnings = append(slices.Clone(ck.Warnings),
		reason+": the structure is read from tensor names alone; only weights are counted, no activations, buffers or ties")
	return g, nil
}

// Bounds of a tensor name, far above any model's: paths are taken apart
// component by component.
const (
	maxNameBytes = 1024
	maxNameDepth = 64
)

// checkNames refuses tensor names that are no module path.
func checkNames(ck *safetensors.Checkpoint) error {
	for i := range ck.Tensors {
		t := &ck.Tensors[i]
		fault := ""
		switch n := t.Name; {
		case n == "" || strings.HasPrefix(n, ".") || strings.HasSuffix(n, ".") || strings.Contains(n, ".."):
			fault = "the name is not a module path: it has an empty part"
		case len(n) > maxNameBytes || strings.Count(n, ".") >= maxNameDepth:
			fault = fmt.Sprintf("the name is longer than %d bytes or deeper than %d modules", maxNameBytes, maxNameDepth)
		}
		if fault != "" {
			return fmt.Errorf("%s: tensor %q: %s", storedFile(ck, t), clipName(t.Name), fault)
		}
	}
	return nil
}

// storedFile is the path of the file that holds a tensor.
func storedFile(ck *safetensors.Checkpoint, t *safetensors.Tensor) string {
	return filepath.Join(ck.Dir, filepath.FromSlash(ck.Files[t.File].Name))
}

// storedPart is where a tensor lies; File is a path that opens from here, the
// folder as it was given joined with the name in it.
func storedPart(ck *safetensors.Checkpoint, t *safetensors.Tensor) modelgraph.Part {
	return modelgraph.Part{Name: t.Name, File: storedFile(ck, t), DType: t.DType, Begin: t.Begin, End: t.End}
}

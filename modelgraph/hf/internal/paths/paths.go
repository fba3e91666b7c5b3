// Package paths takes module paths apart: their parts, patterns with stars for numbers, and the
// tree of modules that the tensor names of a checkpoint spell.
package paths

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Parent is the module that a path lies in, "" at the top.
func Parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

// Last is the last part of a path.
func Last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// NotLinear are last names of modules whose weights [out in] belong to no nn.Linear: routers are
// parameters, and tables are looked up.
var NotLinear = map[string]bool{"gate": true, "router": true, "relative_attention_bias": true, "embed_positions": true, "position_embedding": true, "embedding": true}

// CutLast takes the last part off a path.
func CutLast(path string) (up, last string) {
	up = Parent(path)
	return up, strings.TrimPrefix(path[len(up):], ".")
}

// Decimal reports a part that is a number.
func Decimal(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// compareNumbers orders decimal numbers of any length.
func compareNumbers(x, y string) int {
	a, b := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b), strings.Compare(x, y))
}

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

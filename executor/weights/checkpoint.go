package weights

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Checkpoint reads the parameters of a graph from the files that its tensors name
// ([modelgraph.Tensor.Parts]). It opens them by the rule of [safetensors.OpenBeneath]: no link
// leads out of the model's folder, and only regular files are opened. Before it returns, it reads
// the headers again and checks every slice's name, type and bytes. The parts of a parameter must
// make its shape, and only tied parameters share bytes. So the source has what the graph says, and
// memory for it can be reserved.
//
// The error is [ErrNone] for a graph that was read without weights. Other errors name parameters
// that no file holds, and those with a quantized type.
func Checkpoint(graph *modelgraph.Graph) (Source, error) {
	source := &stored{slices: make(map[string][]slice)}
	builder := &holding{source: source, folder: graph.Folder, files: make(map[string]*openFile), broken: make(map[string]error), owners: make(map[string]string)}
	if err := builder.graph(graph); err != nil {
		for _, file := range source.files {
			file.handle.Close() //nolint:errcheck // the first error counts
		}
		return nil, err
	}
	source.forget()
	return source, nil
}

// holding checks what a graph says of its files against the files.
type holding struct {
	source *stored
	folder string
	files  map[string]*openFile
	broken map[string]error // files that cannot be read
	// owners are the parameters that stored tensors fill, by file and name.
	owners  map[string]string
	missing []string
	count   int
}

func (holding *holding) graph(graph *modelgraph.Graph) error {
	var errs []error
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range layer.Owned() {
			holding.count++
			name := modelgraph.FullName(layer.Name, tensor.Name)
			if len(tensor.Parts) == 0 {
				holding.missing = append(holding.missing, name)
			} else if err := holding.parameter(name, tensor); err != nil && !slices.Contains(errs, err) {
				errs = append(errs, err)
			}
		}
	}
	switch missing := holding.missing; {
	case len(missing) > 0 && len(missing) == holding.count:
		return fmt.Errorf("%s: %w", graph.Source, ErrNone)
	case len(missing) > 0:
		errs = append(errs, fmt.Errorf("%s: no file holds %s: a framework would use random values", graph.Source, some(missing)))
	}
	if len(errs) > mostErrors {
		errs = append(errs[:mostErrors:mostErrors], fmt.Errorf("and %d more errors", len(errs)-mostErrors))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	holding.tied(graph)
	return nil
}

const mostErrors = 10

// tied gives the other names of a tied parameter the same slices.
func (holding *holding) tied(graph *modelgraph.Graph) {
	for _, group := range graph.Ties {
		for _, name := range group[1:] {
			holding.source.slices[name] = holding.source.slices[group[0]]
		}
	}
}

// parameter checks the parts of one parameter against their files' headers.
func (holding *holding) parameter(name string, tensor *modelgraph.Tensor) error {
	count := int64(0)
	for i := range tensor.Parts {
		part := &tensor.Parts[i]
		if !readable(part.DType) {
			return fmt.Errorf("%s: tensor %q: %v is a quantised type, and %q is computed with in floating point: convert the checkpoint", part.File, part.Name, part.DType, name)
		}
		file, err := holding.open(part)
		if err != nil {
			return err
		}
		if err := holding.part(name, tensor, part, file); err != nil {
			return err
		}
		bytes := part.DType.Bits() / 8
		count += (part.End - part.Begin) / bytes
		holding.source.slices[name] = append(holding.source.slices[name], slice{part.Name, file, part.DType, part.Begin, part.End})
	}
	if count != tensor.Numel {
		return fmt.Errorf("%s: the tensors of %q have %d elements, and its shape %v has %d", tensor.Parts[0].File, name, count, tensor.Shape, tensor.Numel)
	}
	return nil
}

// part checks one part against the header of its file. The header is valid: each tensor lies inside
// the file, and shares no byte with another one.
func (holding *holding) part(name string, tensor *modelgraph.Tensor, part *modelgraph.Part, file *openFile) error {
	stored := file.tensors[part.Name]
	fault := ""
	switch {
	case stored == nil:
		fault = "it is gone"
	case stored.DType != part.DType || stored.Begin != part.Begin || stored.End != part.End:
		fault = fmt.Sprintf("it is %v at bytes %d to %d, and was %v at %d to %d when the model was read", stored.DType, stored.Begin, stored.End, part.DType, part.Begin, part.End)
	case len(tensor.Parts) == 1 && !slices.Equal(stored.Shape, tensor.Shape):
		fault = fmt.Sprintf("it is %v, and %q is %v", stored.Shape, name, tensor.Shape)
	}
	key := file.path + "\x00" + part.Name
	if owner, taken := holding.owners[key]; fault == "" && taken {
		fault = fmt.Sprintf("both %q and %q would be read from it, and they are not tied", owner, name)
	}
	if fault != "" {
		return fmt.Errorf("%s: tensor %q: %s", part.File, part.Name, fault)
	}
	holding.owners[key] = name
	return nil
}

// open opens each file once.
func (holding *holding) open(part *modelgraph.Part) (*openFile, error) {
	if file := holding.files[part.File]; file != nil || holding.broken[part.File] != nil {
		return file, holding.broken[part.File]
	}
	folder := holding.folder
	if folder == "" {
		folder = filepath.Dir(part.File)
	}
	name, err := filepath.Rel(folder, part.File)
	if err != nil || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s: tensor %q: the file lies outside of the model's folder %s", part.File, part.Name, folder)
	}
	file, err := open(folder, filepath.ToSlash(name))
	if err != nil {
		holding.broken[part.File] = err
		return nil, err
	}
	holding.files[part.File] = file
	holding.source.files = append(holding.source.files, file)
	return file, nil
}

// some quotes the first of many names.
func some(names []string) string {
	const shown = 3
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
		names = names[:shown]
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ") + more
}

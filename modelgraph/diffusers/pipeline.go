package diffusers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// indexName is the file of a pipeline's folder (pipeline_utils.py: DiffusionPipeline.config_name).
const indexName = "model_index.json"

// Pipeline is the contents of a pipeline's folder.
type Pipeline struct {
	Folder string
	Class  string // such as FluxPipeline
	// Components are the components with weights, in the order of model_index.json.
	Components []Component
}

// Component is a model of a pipeline.
type Component struct {
	Name    string // the name of its folder, such as transformer
	Library string // diffusers, transformers, or a module of the pipeline's own
	Class   string
	Graph   *modelgraph.Graph // nil if it could not be read
	Fault   error             // why not
}

// maxIndexBytes limits a model_index.json, and a component's config.json.
const maxIndexBytes = 64 << 20

// Open reads a pipeline's folder: model_index.json and each component's config.json. It needs no
// weights. A component that is missing or of an unknown class has a Fault; the others are read. The
// folder is in the file system in, or on the disk if in is nil.
func Open(folder string, in fs.FS) (*Pipeline, error) {
	place := filepath.Join(folder, indexName)
	data, err := readSmall(in, place, "a pipeline's index")
	if err != nil {
		return nil, err
	}
	pipeline, err := parseIndex(place, data)
	if err != nil {
		return nil, err
	}
	pipeline.Folder = folder
	for i := range pipeline.Components {
		component := &pipeline.Components[i]
		component.Graph, component.Fault = component.read(folder, in)
	}
	return pipeline, nil
}

// readSmall reads a file of a file system, or of the disk if it is nil.
func readSmall(in fs.FS, place, what string) ([]byte, error) {
	if in != nil {
		return fs.ReadFile(in, filepath.ToSlash(place))
	}
	return modelgraph.ReadSmall(place, what, maxIndexBytes)
}

// parseIndex reads a model_index.json. It has the library and the class of each component, or two
// nulls for one that the pipeline does not use.
func parseIndex(file string, data []byte) (*Pipeline, error) {
	fault := func(place, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
	pipeline := new(Pipeline)
	decoder := jsontext.NewDecoder(strings.NewReader(string(data)))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, fault("", "this is not a JSON object")
	}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, fault("", "%v", err)
		}
		name := token.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, fault(name, "%v", err)
		}
		if err := pipeline.member(name, value, fault); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, fault("", "%v", err)
	}
	if pipeline.Class == "" {
		return nil, fault("_class_name", "it names no pipeline")
	}
	return pipeline, nil
}

// member reads a member of a model_index.json: the pipeline's class, or a component. Components
// without weights are left out.
func (pipeline *Pipeline) member(name string, value jsontext.Value, fault func(place, format string, args ...any) error) error {
	switch {
	case name == "_class_name":
		if err := json.Unmarshal(value, &pipeline.Class); err != nil {
			return fault(name, "%s is not a class of diffusers", short(value))
		}
		return nil
	case strings.HasPrefix(name, "_") || value.Kind() != '[':
		return nil
	}
	var pair [2]*string
	if err := json.Unmarshal(value, &pair); err != nil {
		return fault(name, "%s is not [library, class]", short(value))
	}
	if pair[0] == nil || pair[1] == nil || weightless(*pair[1]) {
		return nil
	}
	if name != filepath.Base(name) || strings.ContainsAny(name, `/\:`) || name == ".." {
		return fault(clip(name), "it is not the name of a folder inside the pipeline's")
	}
	pipeline.Components = append(pipeline.Components, Component{Name: name, Library: *pair[0], Class: *pair[1]})
	return nil
}

// weightless reports whether a class of a pipeline is no model.
func weightless(class string) bool {
	return slices.ContainsFunc([]string{"Scheduler", "Tokenizer", "TokenizerFast", "Processor", "FeatureExtractor", "ImageProcessorPil", "ImageProcessorFast"},
		func(ending string) bool { return strings.HasSuffix(class, ending) })
}

// read reads a component's config by the rules of its library.
func (component *Component) read(folder string, in fs.FS) (*modelgraph.Graph, error) {
	place := filepath.Join(folder, component.Name, hf.ConfigName)
	data, err := readSmall(in, place, "a component's config")
	switch {
	case errors.Is(err, fs.ErrNotExist) || os.IsNotExist(err):
		return nil, fmt.Errorf("%s: the folder has no %s/%s: download it, or plan without it", component.Name, component.Name, hf.ConfigName)
	case err != nil:
		return nil, err
	case component.Library == "transformers":
		return hf.FromConfig(place, typed(data))
	case component.Library != "diffusers" && readers[component.Class] == nil:
		return nil, fmt.Errorf("%s: %q of %s is not a class that is known here", component.Name, clip(component.Class), clip(component.Library))
	}
	return FromConfig(place, data)
}

// typed adds a type to a config without one. A pipeline is loaded in bf16
// (torch_dtype=torch.bfloat16).
func typed(config []byte) []byte {
	var members map[string]jsontext.Value
	if json.Unmarshal(config, &members) != nil || members["dtype"] != nil || members["torch_dtype"] != nil {
		return config
	}
	members["dtype"] = jsontext.Value(`"bfloat16"`)
	out, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return config
	}
	return out
}

package hf

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// ConfigName is the file that describes a model in its folder.
const ConfigName = "config.json"

// maxConfigBytes bounds a config.json: the largest public ones, with per-layer lists, are under 1
// MB.
const maxConfigBytes = 64 << 20

// FromConfig builds the graph that a config.json describes. file is in errors and names the model
// if the config does not. A release of Transformers, such as 5.20, replaces the config's.
func FromConfig(file string, data []byte, transformers ...string) (*modelgraph.Graph, error) {
	graph, _, cfg, err := fromConfig(file, data, transformers...)
	if err == nil {
		graph, err = cfg.checked(graph)
	}
	if err != nil && component(cfg) != "" {
		return fromComponent(cfg, file, data)
	}
	if cfg == nil {
		return nil, err
	}
	if graph, err = byRelease(graph, cfg, err, modelName(cfg, file), file); err != nil {
		return nil, err
	}
	graph.Config = data
	if graph, err = ownHead(graph, cfg); err != nil {
		return nil, err
	}
	return asStored(graph, cfg)
}

// fromConfig returns a graph with a [*tables.FieldError] too: a folder's files may prove it right.
func fromConfig(file string, data []byte, transformers ...string) (*modelgraph.Graph, *family, *config, error) {
	if len(data) > maxConfigBytes {
		return nil, nil, nil, &modelgraph.SyntaxError{File: file, Msg: fmt.Sprintf("%d bytes is more than a config has", len(data))}
	}
	cfg, err := parseConfig(file, data)
	if err != nil {
		return nil, nil, nil, err
	}
	kinds := []string{"rope_type", "type"}
	switch {
	case cfg.said("auto_map"): // the repository's own code may know other types of RoPE
		kinds = nil
	case strings.HasPrefix(cfg.lenient("model_type"), "gemma3"):
		kinds = kinds[:1]
	}
	if err := cmp.Or(cfg.choose(transformers), cfg.checkRotation(kinds...)); err != nil {
		return nil, nil, nil, err
	}
	f, class, foreign, err := familyOf(cfg)
	if err != nil {
		return nil, nil, cfg, err
	}
	if f.table {
		cfg = cfg.filled(f.types[0])
	}
	graph, err := f.graph(cfg, class)
	if err != nil {
		return nil, nil, cfg, err
	}
	cfg.runnable(graph)
	unknown := f.checkFields(cfg, foreign)
	if foreign {
		graph.Warnings = append(graph.Warnings, unknownType(cfg.name("model_type"))+fmt.Sprintf(": read as the %s that architectures names", class))
	}
	if len(cfg.strs("architectures")) == 0 && len(f.known()) > 1 {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("the config names no architectures: %s the class is taken to be %s", fromConfigAlone, class))
	}
	graph.Warnings = slices.Concat(graph.Warnings, choices(class), cfg.shared.drifts, f.misspelt(cfg))
	graph.MaxSeq, graph.Unknown, graph.AutoClass = f.longest(cfg), f.unsaid(cfg, foreign), autoClass(cfg, f.types[0], class, foreign)
	graph.Name, graph.Source, graph.Config = modelName(cfg, file), file, data
	if storedMethod(cfg) != "" {
		warnStored(graph, cfg, "")
	}
	return graph, f, cfg, cmp.Or(cfg.fault(), unknown)
}

// choices says what a sequence is for a class of choices (modeling_bert.py: input_ids.view(-1,
// input_ids.size(-1))).
func choices(class string) []string {
	if !strings.HasSuffix(class, "ForMultipleChoice") {
		return nil
	}
	return []string{class + " reads each choice as a sequence: a question with four choices is four of --batch"}
}

// unsaid are values that running the model needs and the config lacks.
func (f *family) unsaid(cfg *config, foreign bool) []string {
	if f.runs && !foreign {
		return cfg.shared.unknown
	}
	return []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(cfg.name("model_type")))}
}

// loaded is the type that weights of a config alone are counted in.
func loaded(cfg *config) modelgraph.DType {
	dtype, _ := modelDType(cfg)
	return dtype
}

// graph builds one class of the family.
func (f *family) graph(cfg *config, class string) (*modelgraph.Graph, error) {
	dtype, given := modelDType(cfg)
	modules := new(builder)
	f.build(modules, cfg, class)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	named := classNames(class, f.types[0])
	modules.keepFloat32(named, cfg, dtype)
	modules.save(named.Stored)
	if !given && modules.untyped() {
		modules.warnings = append(modules.warnings, fmt.Sprintf("the config names no dtype: %s its weights are counted as %v, as Transformers' from_config makes them (from_pretrained takes the checkpoint's type)", fromConfigAlone, dtype))
	}
	if dtype.Float() && !slices.Contains([]modelgraph.DType{modelgraph.F32, modelgraph.F16, modelgraph.BF16}, dtype) {
		modules.warnings = append(modules.warnings, fmt.Sprintf("dtype %v: weights are counted so if they keep the checkpoint's type; activations are counted in bf16, --precision 32-true counts them in fp32", dtype))
	}
	if !dtype.Float() {
		modules.warnings = append(modules.warnings, fmt.Sprintf("dtype %v: weights are counted so, and without gradients: torch's modules compute with float32, float16 or bfloat16", dtype))
	}
	graph, err := modules.graph("", dtype)
	if err != nil {
		var syn *modelgraph.SyntaxError
		if errors.As(err, &syn) {
			return nil, &modelgraph.SyntaxError{File: cfg.file, Msg: "the sizes make no model: " + syn.Error()}
		}
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Family, graph.Class = f.types[0], class
	if given {
		graph.DType = dtype
	}
	return graph, cfg.fault()
}

func (f *family) longest(cfg *config) int64 {
	if f.maxSeq != nil {
		return cmp.Or(f.maxSeq(cfg), longestByDefault[f.types[0]])
	}
	name := "max_position_embeddings"
	if cfg.class != nil && cfg.class.Aliases[name] != "" {
		name = cfg.class.Aliases[name]
	}
	return cfg.dim(longestByDefault[f.types[0]], name)
}

// longestByDefault are the longest sequences of published configs that leave them out
// (configuration_gemma3.py, configuration_gpt_oss.py).
var longestByDefault = map[string]int64{"gemma3": 131072, "gemma3_text": 131072, "gpt_oss": 131072}

// modelName is the config's name of the model, else its folder or file.
func modelName(cfg *config, file string) string {
	if name := cfg.name(cfg.pick([]string{"_name_or_path", "name_or_path"})); name != "" && filepath.Base(name) != "." {
		return filepath.Base(name)
	}
	base := filepath.Base(file)
	if base != ConfigName {
		return base[:len(base)-len(filepath.Ext(base))]
	}
	if abs, err := filepath.Abs(file); err == nil {
		return filepath.Base(filepath.Dir(abs))
	}
	return base
}

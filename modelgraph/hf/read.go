package hf

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/devmap-dev/devmap/modelgraph"
)

// ConfigName is the file that describes a model in its folder.
const ConfigName = "config.json"

// maxConfigBytes bounds a config.json: the largest public ones, with per-layer
// lists, stay under 1 MB.
const maxConfigBytes = 64 << 20

// FromConfig builds the graph that a config.json describes. file stands in
// errors and names the model where the config does not.
func FromConfig(file string, data []byte) (*modelgraph.Graph, error) {
	g, _, _, err := fromConfig(file, data)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// fromConfig gives the graph beside an [*unknownFieldError] too: the files of
// a folder may prove it right.
func fromConfig(file string, data []byte) (*modelgraph.Graph, *family, *config, error) {
	if len(data) > maxConfigBytes {
		return nil, nil, nil, &modelgraph.SyntaxError{File: file, Msg: fmt.Sprintf("%d bytes is more than a config has", len(data))}
	}
	c, err := parseConfig(file, data)
	if err != nil {
		return nil, nil, nil, err
	}
	f, class, foreign, err := familyOf(c)
	if err != nil {
		return nil, nil, c, err
	}
	g, err := f.graph(c, class)
	if err != nil {
		return nil, nil, c, err
	}
	unknown := f.checkFields(c, foreign)
	if foreign {
		g.Warnings = append(g.Warnings, unknownType(c.name("model_type"))+fmt.Sprintf(": read as the %s that architectures names", class))
	}
	g.MaxSeq = f.longest(c)
	g.Name, g.Source = modelName(c, file), file
	if q := c.sub("quantization_config"); q.has("quant_method") {
		g.Warnings = append(g.Warnings, fmt.Sprintf("the config says the weights are stored as %s; from the config alone they are counted as %v; the folder with its safetensors files gives the stored sizes", q.str("", "quant_method"), loaded(c)))
	}
	return g, f, c, cmp.Or(c.fault(), unknown)
}

// loaded is the type that weights of a config alone are counted in.
func loaded(c *config) modelgraph.DType {
	d, _ := modelDType(c)
	return d
}

// graph builds one class of the family.
func (f *family) graph(c *config, class string) (*modelgraph.Graph, error) {
	d, given := modelDType(c)
	b := new(builder)
	f.build(b, c, class)
	if c.fault() != nil {
		return nil, c.fault()
	}
	g, err := b.graph("", d)
	if err != nil {
		var syn *modelgraph.SyntaxError
		if errors.As(err, &syn) {
			return nil, &modelgraph.SyntaxError{File: c.file, Msg: "the sizes make no model: " + syn.Error()}
		}
		return nil, fmt.Errorf("%s: %w", c.file, err)
	}
	g.Family, g.Class = f.types[0], class
	if given {
		g.DType = d
	}
	return g, c.fault()
}

func (f *family) longest(c *config) int64 {
	if f.maxSeq != nil {
		return f.maxSeq(c)
	}
	return c.dim(0, "max_position_embeddings")
}

// modelName is what the config calls the model, else its folder or file.
func modelName(c *config, file string) string {
	if n := c.name(c.pick([]string{"_name_or_path", "name_or_path"})); n != "" && filepath.Base(n) != "." {
		return filepath.Base(n)
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

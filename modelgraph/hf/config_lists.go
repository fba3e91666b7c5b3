package hf

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// dims reads a list of sizes; nil if the field is absent or null. A number counts as a list of one.
func (cfg *fieldReader) dims(name string) []int64 {
	if !cfg.has(name) {
		return nil
	}
	if cfg.members[name].Kind() == '0' {
		return []int64{cfg.dim(0, name)}
	}
	var raw []jsontext.Value
	if json.Unmarshal(cfg.members[name], &raw) != nil || len(raw) > maxLayers {
		cfg.fail(name, "%s is not a list of sizes", short(cfg.members[name]))
		return nil
	}
	out := make([]int64, len(raw))
	for i, v := range raw {
		count, err := size(v)
		if err != nil {
			cfg.fail(fmt.Sprintf("%s[%d]", name, i), "%v", err)
			return nil
		}
		out[i] = count
	}
	return out
}

// strs reads a list of strings; nil if the field is absent or null.
func (cfg *fieldReader) strs(name string) []string {
	if !cfg.has(name) {
		return nil
	}
	var out []string
	if json.Unmarshal(cfg.members[name], &out) != nil || len(out) > maxLayers {
		cfg.fail(name, "%s is not a list of strings", short(cfg.members[name]))
		return nil
	}
	return out
}

// numbers reads a list of numbers; nil if the field is absent or null.
func (cfg *fieldReader) numbers(name string) []float64 {
	if !cfg.has(name) {
		return nil
	}
	var out []float64
	if json.Unmarshal(cfg.members[name], &out) != nil || len(out) > maxLayers {
		cfg.fail(name, "%s is not a list of numbers", short(cfg.members[name]))
		return nil
	}
	return out
}

// arrays reads a list of lists; nil if the field is absent or null.
func (cfg *fieldReader) arrays(name string) [][]jsontext.Value {
	if !cfg.has(name) {
		return nil
	}
	var out [][]jsontext.Value
	if json.Unmarshal(cfg.members[name], &out) != nil || len(out) > maxLayers {
		cfg.fail(name, "%s is not a list of lists", short(cfg.members[name]))
		return nil
	}
	return out
}

// perLayer reads a size that all layers have, or a list with one a layer.
func (cfg *fieldReader) perLayer(name string, layers int64) []int64 {
	sizes := cfg.dims(name)
	switch {
	case len(sizes) == 1 && cfg.members[name].Kind() != '[':
		return slices.Repeat(sizes, int(layers))
	case int64(len(sizes)) < layers:
		if cfg.fault() == nil {
			cfg.uneven(name, len(sizes), layers)
		}
		return make([]int64, layers)
	}
	return sizes
}

// uneven refuses a list that has no entry for each layer.
func (cfg *fieldSet) uneven(name string, entries int, layers int64) {
	cfg.fail(name, tables.UnevenText, entries, layers, cfg.shared.in.Name)
}

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
	if cfg.has(name) && cfg.members[name].Kind() == '0' {
		return []int64{cfg.dim(0, name)}
	}
	raw := listOf[jsontext.Value](&cfg.fieldSet, name, "sizes")
	if raw == nil {
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

// listOf reads a list of what; nil if the field is absent or null.
func listOf[item any](cfg *fieldSet, name, what string) (list []item) {
	if cfg.has(name) && (json.Unmarshal(cfg.members[name], &list) != nil || len(list) > maxLayers) {
		cfg.fail(name, "%s is not a list of %s", short(cfg.members[name]), what)
		return nil
	}
	return list
}

func (cfg *fieldReader) strs(name string) []string {
	return listOf[string](&cfg.fieldSet, name, "strings")
}

func (cfg *fieldReader) numbers(name string) []float64 {
	return listOf[float64](&cfg.fieldSet, name, "numbers")
}

func (cfg *fieldReader) arrays(name string) [][]jsontext.Value {
	return listOf[[]jsontext.Value](&cfg.fieldSet, name, "lists")
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

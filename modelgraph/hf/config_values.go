package hf

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a config's sizes: far above any model, but no product overflows and no loop is endless.
const (
	maxDim    = 1 << 40
	maxLayers = 10_000
)

// aSize describes dim's values. Numbers with a point are errors, as in Transformers, whose configs
// have typed fields (configuration_utils.py, @strict).
const aSize = "a size (an integer from 0 to 2^40)"

// dim reads a size: an integer from 0 to 2^40. names are spellings.
func (cfg *fieldReader) dim(def int64, names ...string) int64 {
	name, ok := cfg.given(aSize, names)
	if !ok {
		cfg.shared.assumed = append(cfg.shared.assumed, cfg.prefix+name)
		return def
	}
	count, err := size(cfg.members[name])
	if err != nil {
		cfg.fail(name, "%v", err)
		return def
	}
	return count
}

// pos is dim without zero.
func (cfg *fieldReader) pos(def int64, names ...string) int64 {
	count := cfg.dim(def, names...)
	if count == 0 {
		cfg.fail(cfg.pick(names), "0 is not a size: it must be 1 or more")
		return 1
	}
	return count
}

// optional is pos, with def for a null too.
func (cfg *fieldReader) optional(def int64, name string) int64 {
	if cfg.null(name) {
		return def
	}
	return cfg.pos(def, name)
}

// orNull is pos; an absent field means def, a null one auto. With def 0, both mean auto.
func (cfg *fieldReader) orNull(def, auto int64, name string) int64 {
	if def == 0 && name == "head_dim" && !cfg.has(name) {
		return auto // by every family's rule: nothing was assumed
	}
	if def == 0 || cfg.null(name) {
		def = auto
	}
	return cfg.optional(def, name)
}

// count reads a number of layers.
func (cfg *fieldReader) count(def int64, names ...string) int64 {
	count := cfg.dim(def, names...)
	if count > maxLayers {
		cfg.fail(cfg.pick(names), "%d is more than %d layers", count, maxLayers)
		return 0
	}
	return count
}

// value reads a field of any JSON type; what names the type in errors.
func value[T any](cfg *fieldSet, def T, what string, names []string) T {
	name, ok := cfg.given(what, names)
	if !ok {
		return def
	}
	var v T
	if json.Unmarshal(cfg.members[name], &v) != nil {
		cfg.fail(name, "%s is not %s", short(cfg.members[name]), what)
	}
	return v
}

func (cfg *fieldReader) bool(def bool, names ...string) bool {
	return value(&cfg.fieldSet, def, "true or false", names)
}

// flag is a bool that is off if it is absent or null.
func (cfg *fieldReader) flag(name string) bool { return cfg.has(name) && cfg.bool(false, name) }

// name is a string that is empty if it is absent or null.
func (cfg *fieldReader) name(field string) string {
	if !cfg.has(field) {
		return ""
	}
	return cfg.str("", field)
}

func (cfg *fieldReader) str(def string, names ...string) string {
	return value(&cfg.fieldSet, def, "a string", names)
}

func (cfg *fieldReader) float(def float64, names ...string) float64 {
	return value(&cfg.fieldSet, def, "a number", names)
}

func size(v jsontext.Value) (int64, error) {
	count, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || count < 0 || count > maxDim {
		return 0, fmt.Errorf("%s is not %s", short(v), aSize)
	}
	return count, nil
}

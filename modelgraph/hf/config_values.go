package hf

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what a config may ask for: far above any model, low enough that
// no product overflows and no loop runs away.
const (
	maxDim    = 1 << 40
	maxLayers = 10_000
)

// aSize is what dim reads. Numbers with a point are none, as in Transformers,
// whose configs have typed fields (configuration_utils.py, @strict).
const aSize = "a size (an integer from 0 to 2^40)"

// dim reads a size: an integer from 0 to 2^40. names are spellings.
func (c *config) dim(def int64, names ...string) int64 {
	name, ok := c.given(aSize, names)
	if !ok {
		c.shared.assumed = append(c.shared.assumed, c.prefix+name)
		return def
	}
	n, err := size(c.m[name])
	if err != nil {
		c.fail(name, "%v", err)
		return def
	}
	return n
}

// pos is dim without zero.
func (c *config) pos(def int64, names ...string) int64 {
	n := c.dim(def, names...)
	if n == 0 {
		c.fail(c.pick(names), "0 is not a size: it must be 1 or more")
		return 1
	}
	return n
}

// optional is pos where null means def, as an absent field does.
func (c *config) optional(def int64, name string) int64 {
	if c.null(name) {
		return def
	}
	return c.pos(def, name)
}

// orNull is pos where an absent field means def and a null one auto; without
// a default, both mean auto.
func (c *config) orNull(def, auto int64, name string) int64 {
	if def == 0 && name == "head_dim" && !c.has(name) {
		return auto // by every family's rule: nothing was assumed
	}
	if def == 0 || c.null(name) {
		def = auto
	}
	return c.optional(def, name)
}

// count reads a number of layers.
func (c *config) count(def int64, names ...string) int64 {
	n := c.dim(def, names...)
	if n > maxLayers {
		c.fail(c.pick(names), "%d is more than %d layers", n, maxLayers)
		return 0
	}
	return n
}

// value reads a field of any JSON type, of which what is the name in errors.
func value[T any](c *config, def T, what string, names []string) T {
	name, ok := c.given(what, names)
	if !ok {
		return def
	}
	var v T
	if json.Unmarshal(c.m[name], &v) != nil {
		c.fail(name, "%s is not %s", short(c.m[name]), what)
	}
	return v
}

func (c *config) bool(def bool, names ...string) bool { return value(c, def, "true or false", names) }

// flag is a bool that is off where it is absent or null.
func (c *config) flag(name string) bool { return c.has(name) && c.bool(false, name) }

// name is a string that is empty where it is absent or null.
func (c *config) name(field string) string {
	if !c.has(field) {
		return ""
	}
	return c.str("", field)
}

func (c *config) str(def string, names ...string) string { return value(c, def, "a string", names) }

func (c *config) float(def float64, names ...string) float64 { return value(c, def, "a number", names) }

func size(v jsontext.Value) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 || n > maxDim {
		return 0, fmt.Errorf("%s is not %s", short(v), aSize)
	}
	return n, nil
}

package hf

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// dims reads a list of sizes; nil where the field is absent or null. A single
// number counts as a list of one.
func (c *config) dims(name string) []int64 {
	if !c.has(name) {
		return nil
	}
	if c.m[name].Kind() == '0' {
		return []int64{c.dim(0, name)}
	}
	var raw []jsontext.Value
	if json.Unmarshal(c.m[name], &raw) != nil || len(raw) > maxLayers {
		c.fail(name, "%s is not a list of sizes", short(c.m[name]))
		return nil
	}
	out := make([]int64, len(raw))
	for i, v := range raw {
		n, err := size(v)
		if err != nil {
			c.fail(fmt.Sprintf("%s[%d]", name, i), "%v", err)
			return nil
		}
		out[i] = n
	}
	return out
}

// strs reads a list of strings; nil where the field is absent or null.
func (c *config) strs(name string) []string {
	if !c.has(name) {
		return nil
	}
	var out []string
	if json.Unmarshal(c.m[name], &out) != nil || len(out) > maxLayers {
		c.fail(name, "%s is not a list of strings", short(c.m[name]))
		return nil
	}
	return out
}

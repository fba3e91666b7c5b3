package hf

import (
	"strconv"
	"strings"
)

// stack joins the weights of single experts into one parameter: per expert
// the sources one under the other, the experts stacked along a new first
// dimension (WeightConverter with MergeModulelist(0) and Concatenate(1)).
type stack struct {
	head    string   // before the expert's number: "mlp.experts."
	sources []string // after it: ".gate_proj.weight", ".up_proj.weight"
	to      string   // "mlp.experts.gate_up_proj"
	scopes  []string // the name starts with one of them; none: anywhere
}

// match reads a name such as model.layers.3.mlp.experts.17.up_proj.weight.
// What follows the source's name stays (…weight_scale_inv).
func (layers *stack) match(name string) (slot, bool) {
	if len(layers.scopes) > 0 && !hasAnyPrefix(name, layers.scopes) {
		return slot{}, false
	}
	at := strings.Index(name, layers.head)
	if at < 0 {
		return slot{}, false
	}
	rest := name[at+len(layers.head):]
	dot := strings.IndexByte(rest, '.')
	if dot <= 0 {
		return slot{}, false
	}
	expert, err := strconv.ParseUint(rest[:dot], 10, 31)
	if err != nil {
		return slot{}, false
	}
	for i, source := range layers.sources {
		if tail, ok := strings.CutPrefix(rest[dot:], source); ok {
			return slot{name: name[:at] + layers.to + tail, stacked: true, expert: int(expert), source: i}, true
		}
	}
	return slot{}, false
}

func hasAnyPrefix(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

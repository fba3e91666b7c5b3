package hf

import (
	"cmp"
	"strings"
)

// parent is the module that a path lies in, "" at the top.
func parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

func lastComponent(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// notLinear are last names of modules whose weights [out in] belong to no nn.Linear: routers are
// parameters, and tables are looked up.
var notLinear = map[string]bool{"gate": true, "router": true, "relative_attention_bias": true, "embed_positions": true, "position_embedding": true, "embedding": true}

// cutLast takes the last part off a path.
func cutLast(path string) (up, last string) {
	up = parent(path)
	return up, strings.TrimPrefix(path[len(up):], ".")
}

func decimal(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// compareNumbers orders decimal numbers of any length.
func compareNumbers(x, y string) int {
	a, b := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b), strings.Compare(x, y))
}

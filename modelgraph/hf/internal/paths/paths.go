package paths

import (
	"cmp"
	"strings"
)

// Parent is the module that a path lies in, "" at the top.
func Parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

func Last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// NotLinear are last names of modules whose weights [out in] belong to no nn.Linear: routers are
// parameters, and tables are looked up.
var NotLinear = map[string]bool{"gate": true, "router": true, "relative_attention_bias": true, "embed_positions": true, "position_embedding": true, "embedding": true}

// CutLast takes the last part off a path.
func CutLast(path string) (up, last string) {
	up = Parent(path)
	return up, strings.TrimPrefix(path[len(up):], ".")
}

func Decimal(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// compareNumbers orders decimal numbers of any length.
func compareNumbers(x, y string) int {
	a, b := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b), strings.Compare(x, y))
}

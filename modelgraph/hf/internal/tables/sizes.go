package tables

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

const (
	notSize   = "%s is not a size: Transformers %s needs %v or more here; correct the field"
	notDivide = "%v heads do not divide %v (%s), which a %s of Transformers %s needs; correct one of the fields"
)

// refuseSize notes the first fault of a field's value. Transformers may build such a model, and cannot run it.
func refuseSize(tree *Tree, object *Object, path, format string, args ...any) {
	if tree.Noted == nil {
		tree.Noted = &modelgraph.SyntaxError{File: tree.file, Place: object.prefix + path, Msg: fmt.Sprintf(format, args...)}
	}
}

// tooSmall notes a number of the file that is too small for its field.
func tooSmall(tree *Tree, object *Object, path string, least float64) {
	if n, isNumber := object.saidOf(path).(float64); isNumber && n < least {
		refuseSize(tree, object, path, notSize, InJSON(n), tree.in.Name, least)
	}
}

// noHeads notes numbers of heads below 1, and other values: classes divide by them, and few tensors show it.
func noHeads(tree *Tree, object *Object) {
	for _, name := range slices.Sorted(maps.Keys(object.said)) {
		usual, field := object.class.Fields[name]
		n, isNumber := usual.(float64)
		if !field || usual != nil && !(isNumber && n > 0) || !strings.HasSuffix(name, "heads") && name != "n_head" {
			continue
		}
		tooSmall(tree, object, name, 1)
		switch said := object.said[name]; said.(type) {
		case bool, string:
			if isNumber {
				refuseSize(tree, object, name, notSize, InJSON(said), tree.in.Name, 1)
			}
		}
	}
	ofForwards(tree, object)
}

// ofKinds notes values of the file that are of another kind than the default, and sizes that are not integers. Readers of
// reviewed classes refused the same.
func ofKinds(tree *Tree, object *Object, class string) {
	for _, name := range slices.Sorted(maps.Keys(object.said)) {
		if fault := otherKind(name, object.class.Fields[name], object.said[name]); fault != "" {
			refuseSize(tree, object, name, "%s is not %s; correct the field", InJSON(object.said[name]), fault)
		}
	}
	heads, _ := number(object.values["num_attention_heads"])
	if shared, _ := number(object.said["num_key_value_heads"]); shared >= 1 && math.Mod(heads, shared) != 0 {
		refuseSize(tree, object, "num_key_value_heads", notDivide, shared, heads, "num_attention_heads", class, tree.in.Name)
	}
	for _, all := range []string{"num_experts", "num_local_experts"} {
		experts, known := object.values[all].(float64)
		if chosen, said := object.said["num_experts_per_tok"].(float64); said && known && experts > 0 && (chosen > experts || chosen < 1 || chosen != math.Floor(chosen)) {
			refuseSize(tree, object, "num_experts_per_tok", "a token cannot go to %v of %v experts", chosen, experts)
		}
	}
	size, sized := number(object.values["hidden_size"])
	if sized && object.values["head_dim"] == nil && heads > size {
		refuseSize(tree, object, "num_attention_heads", "%v heads are more than the %v numbers of hidden_size, and Transformers %s cannot run them; correct one of the fields", heads, size, tree.in.Name)
	}
}

// otherKind says what a field of this default should be, if the value is of another kind; or "". Lists
// are those of [Class.newList]. Files of 2022 have empty objects (pruned_heads).
func otherKind(name string, usual, said any) string {
	if none, isObject := said.(map[string]any); said == nil || AnyToken(name) || usual == "auto" || isObject && len(none) == 0 && usual == nil {
		return ""
	}
	switch usual := usual.(type) {
	case bool:
		if _, ok := said.(bool); !ok {
			return "true or false"
		}
	case string:
		if _, ok := said.(string); !ok {
			return "a text"
		}
	case float64:
		return otherNumber(name, usual, said)
	case nil:
		if _, isSwitch := said.(bool); !isSwitch && sizeName.MatchString(name) {
			return otherNumber(name, 0, said)
		}
	}
	return ""
}

// otherNumber says what a field with this number as its default should be, if the value is another; or "".
func otherNumber(name string, usual float64, said any) string {
	n, isNumber := said.(float64)
	switch size := sizeName.MatchString(name) && usual == math.Floor(usual); {
	case kindOf(said) == "list":
	case size && (!isNumber || n != math.Floor(n) || n < min(0, usual) || n > 1<<40):
		return "a size (an integer from 0 to 2^40)"
	case !isNumber:
		return "a number"
	}
	return ""
}

// sizeName is in names of sizes and counts.
var sizeName = regexp.MustCompile(`(^|_)(dim|size|width|heads?|layers?|positions?|position_embeddings|experts|window|n_\w+)$`)

// ofForwards notes values that only a forward of the class, or devmap's count, needs.
func ofForwards(tree *Tree, object *Object) {
	switch object.class.Config {
	case "CwmConfig", "GlmConfig", "Glm4Config", "StableLmConfig":
		badShare(tree, object, "partial_rotary_factor")
	case "GraniteMoeConfig", "MixtralConfig": // all layers have experts
		tooSmall(tree, object, "num_local_experts", 1)
	case "OlmoeConfig":
		tooSmall(tree, object, "num_experts", 1)
	case "GPTNeoXConfig":
		badShare(tree, object, "rotary_pct")
	case "CodeGenConfig": // modeling_codegen.py: positions look up a table of sines
		tooSmall(tree, object, "n_positions", 1)
	case "AlbertConfig": // layers share their tensors, which are there without any layer too
		if n, isNumber := object.said["num_hidden_layers"].(float64); isNumber && n < 1 {
			refuseSize(tree, object, "num_hidden_layers", "%s: devmap counts layers that share tensors from 1 on; correct the field", InJSON(n))
		}
	case "HeliumConfig": // modeling_helium.py: o_proj is as wide as the model
		size, _ := number(object.values["hidden_size"])
		heads, _ := number(object.values["num_attention_heads"])
		if width, said := object.said["head_dim"].(float64); said && width*heads != size {
			refuseSize(tree, object, "head_dim", "%v × %v heads is not hidden_size %v, which the projection behind them has; correct one of the fields", width, heads, size)
		}
	case "MptConfig": // modeling_mpt.py: MptAttention makes its heads in the forward alone
		size, _ := number(object.values["d_model"])
		heads, _ := number(object.values["n_heads"])
		if heads >= 1 && math.Mod(size, heads) != 0 {
			refuseSize(tree, object, "n_heads", notDivide, heads, size, "d_model", "MptModel", tree.in.Name)
		}
	}
}

// badShare notes a share of a head that cannot turn: the forward fails with more than all of it. A share of 0 runs.
func badShare(tree *Tree, object *Object, path string) {
	share := object.said["partial_rotary_factor"]
	if said := object.said["rope_parameters"]; said != nil {
		rope, isObject := said.(map[string]any)
		if !isObject {
			refuseSize(tree, object, "rope_parameters", "%s is not an object, as Transformers %s needs: correct or remove it", InJSON(said), tree.in.Name)
		}
		if inside := rope["partial_rotary_factor"]; inside != nil {
			path, share = "rope_parameters.partial_rotary_factor", inside
		}
	}
	n, isNumber := number(share)
	if share != nil && (!isNumber || n < 0 || n > 1) {
		refuseSize(tree, object, path, "%s is not a share from 0 to 1, which Transformers %s needs; correct the field", InJSON(share), tree.in.Name)
	}
}

// emptied notes a parameter without elements, if a field of the file makes it so. A model may have no
// layers, experts or labels.
func emptied(tree *Tree, of *evaluation, dim any) {
	path := of.below1(dim)
	if !slices.ContainsFunc([]string{"layers", "expert", "labels"}, func(count string) bool { return strings.Contains(path, count) }) {
		tooSmall(tree, of.object, path, 1)
	}
}

// undivided refuses heads that do not divide a size, if a condition of the class asks for it.
func undivided(tree *Tree, class *Class, of *evaluation, rule []any) error {
	whole, by := divides(rule)
	text, _ := by.(string)
	path, isField := strings.CutPrefix(text, "$")
	if !isField || !strings.Contains(path, "head") {
		return nil
	}
	size, heads := of.eval(whole, nil), of.eval(by, nil)
	sizes := strings.Join(slices.Compact(fieldsIn(whole, nil)), ", ")
	return &modelgraph.SyntaxError{File: tree.file, Place: of.object.prefix + path, Msg: fmt.Sprintf(notDivide, heads, size, sizes, class.Class, tree.in.Name)}
}

// divides are the sides of a condition that one number divides another; nil if it is another condition.
func divides(rule []any) (whole, by any) {
	condition, _ := rule[1].([]any)
	if len(condition) < 2 {
		return nil, nil
	}
	rest, _ := condition[1].([]any)
	if len(rest) != 3 {
		return nil, nil
	}
	quotient, _ := rest[1].([]any)
	switch {
	case rest[0] == "%" && rule[2] == false && condition[0] == "truth",
		rest[0] == "%" && rule[2] == true && condition[0] == "==" && condition[2] == 0.0:
		return rest[1], rest[2]
	case rest[0] == "*" && rule[2] == true && condition[0] == "==" && DeepEqual(quotient, []any{"//", condition[2], rest[2]}):
		return condition[2], rest[2]
	}
	return nil, nil
}

// below1 is the first field that an expression reads and that the file sets to a number below 1; or "".
func (of *evaluation) below1(e any) string {
	for _, path := range fieldsIn(e, nil) {
		if n, isNumber := of.object.saidOf(path).(float64); isNumber && n < 1 {
			return path
		}
		if rule, ruled := of.rules[path]; ruled {
			if inside := (&evaluation{object: of.object}).below1(rule); inside != "" {
				return inside
			}
		}
	}
	return ""
}

package tables

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// This file has Python's operations on values that expressions of type tables use.

// maxRounds bounds lists that an expression makes.
const maxRounds = 100_000

func apply(op string, xs []any) (any, bool) {
	switch len(xs) {
	case 1:
		if v, ok := ofOne(op, xs[0]); ok {
			return v, true
		}
	case 2:
		if v, ok := ofTwo(op, xs[0], xs[1]); ok {
			return v, true
		}
	}
	switch op {
	case "list":
		return xs, true
	case "cat":
		var joined []any
		for _, x := range xs {
			list, ok := x.([]any)
			if !ok {
				return nil, false
			}
			joined = append(joined, list...)
		}
		return joined, true
	case "name":
		parts := make([]string, len(xs))
		for i, x := range xs {
			parts[i] = fmt.Sprint(x)
		}
		return strings.Join(parts, "."), true
	case "stages", "outputs", "outnames":
		return ofStages(op, xs)
	}
	return nil, false
}

// ofStages are the names of a backbone's stages, and the numbers and names of those that it gives by the file's
// out_features and out_indices (backbone_utils.py, set_output_features_output_indices).
func ofStages(op string, xs []any) (any, bool) {
	if op == "stages" {
		return stageNames(xs[0], xs[1] != 0.0)
	}
	names, ok := xs[0].([]any)
	features, indices := xs[1], xs[2]
	find := "ix"
	if op == "outputs" {
		features, indices, find = indices, features, "index"
	}
	switch {
	case !ok || len(names) == 0:
		return nil, false
	case features != nil:
		_, ok = features.([]any)
		return features, ok
	case indices == nil && op == "outputs":
		return []any{float64(len(names) - 1)}, true
	case indices == nil:
		return names[len(names)-1:], true
	}
	list, ok := indices.([]any)
	var out []any
	for _, x := range list {
		value, found := ofTwo(find, names, x)
		if found {
			out = append(out, value)
		}
		ok = ok && found
	}
	return out, ok
}

// stageNames are "stem", if the backbone has one, and "stage1" to "stageN".
func stageNames(count any, stem bool) (any, bool) {
	n, ok := number(count)
	if !ok || n > maxRounds {
		return nil, false
	}
	var names []any
	if stem {
		names = append(names, "stem")
	}
	for k := range int(n) {
		names = append(names, fmt.Sprintf("stage%d", k+1))
	}
	return names, true
}

func ofOne(op string, x any) (any, bool) {
	switch op {
	case "truth":
		return truth(x), true
	case "act": // an activation by one of its names (activations.py)
		if x == "swish" {
			return "silu", true
		}
		_, text := x.(string)
		return x, text
	case "not":
		return !truth(x), true
	case "null":
		return x == nil, true
	case "many":
		_, list := x.([]any)
		return list, true
	case "len":
		switch x := x.(type) {
		case []any:
			return float64(len(x)), true
		case map[string]any:
			return float64(len(x)), true
		}
		return nil, false
	}
	if list, ok := x.([]any); ok {
		return ofList(op, list)
	}
	n, ok := number(x)
	f := functions[op]
	if !ok || f == nil {
		return nil, false
	}
	v := f(n)
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// functions are Python's; math.RoundToEven is its round.
var functions = map[string]func(float64) float64{
	"int": math.Trunc, "ceil": math.Ceil, "floor": math.Floor, "round": math.RoundToEven, "sqrt": math.Sqrt,
	"log": math.Log, "log2": math.Log2, "exp": math.Exp,
	"float": func(x float64) float64 { return x },
	"bits":  func(x float64) float64 { return math.Floor(math.Log2(max(x, 0.5))) + 1 },
}

func ofList(op string, list []any) (any, bool) {
	total := map[string]float64{"sum": 0, "prod": 1, "maxof": math.Inf(-1), "minof": math.Inf(1)}
	v, ok := total[op]
	for _, x := range list {
		n, isNumber := number(x)
		if !isNumber {
			return nil, false
		}
		switch op {
		case "sum":
			v += n
		case "prod":
			v *= n
		case "maxof":
			v = max(v, n)
		case "minof":
			v = min(v, n)
		}
	}
	return v, ok && !math.IsInf(v, 0)
}

func ofTwo(op string, x, y any) (any, bool) {
	switch op {
	case "==":
		return equal(x, y), true
	case "alike":
		return DeepEqual(x, y), true
	case "in":
		list, ok := y.([]any)
		return slices.ContainsFunc(list, func(z any) bool { return equal(x, z) }), ok
	case "index", "count":
		return places(op, x, y)
	case "stage", "within":
		return stage(op, x, y)
	case "at": // a value instead of a list counts for each of its elements
		if _, list := x.([]any); !list {
			return x, true
		}
		return element(x, y)
	case "ix":
		return element(x, y)
	case "key", "has":
		m, isMap := x.(map[string]any)
		key, isText := y.(string)
		v, there := m[key]
		if op == "has" {
			return there, isMap && isText
		}
		return v, there
	}
	a, isNumber := number(x)
	b, alsoNumber := number(y)
	if !isNumber || !alsoNumber {
		return nil, false
	}
	if op == "<" {
		return a < b, true
	}
	return arithmetic(op, a, b)
}

func arithmetic(op string, a, b float64) (any, bool) {
	var v float64
	switch op {
	case "+":
		v = a + b
	case "-":
		v = a - b
	case "*":
		v = a * b
	case "/":
		v = a / b
	case "//":
		v = floorDiv(a, b)
	case "%":
		v = a - b*floorDiv(a, b)
	case "**":
		v = math.Pow(a, b)
	case "max":
		v = max(a, b)
	case "min":
		v = min(a, b)
	default:
		return nil, false
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// floorDiv is Python's //, exact for whole numbers up to 2^53.
func floorDiv(a, b float64) float64 {
	if b != 0 && a == math.Trunc(a) && b == math.Trunc(b) {
		r := math.Mod(a, b)
		if r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return (a - r) / b
	}
	return math.Floor(a / b)
}

func places(op string, x, y any) (any, bool) {
	list, ok := x.([]any)
	count := 0
	for i, z := range list {
		if !equal(y, z) {
			continue
		}
		if op == "index" {
			return float64(i), true
		}
		count++
	}
	return float64(count), ok && op == "count"
}

// stage is the part of a list, of parts of lengths x, with number y; within is its number there.
func stage(op string, x, y any) (any, bool) {
	lengths, ok := x.([]any)
	at, isNumber := number(y)
	for i, length := range lengths {
		n, sized := number(length)
		switch {
		case !ok || !isNumber || !sized || at < 0:
			return nil, false
		case at >= n:
			at -= max(n, 0)
		case op == "stage":
			return float64(i), true
		default:
			return at, true
		}
	}
	return nil, false
}

// element is an element of a list, counted from its end if the number is negative.
func element(x, y any) (any, bool) {
	list, ok := x.([]any)
	n, isNumber := number(y)
	if n < 0 {
		n += float64(len(list))
	}
	if !ok || !isNumber || n < 0 || n >= float64(len(list)) || n != math.Trunc(n) {
		return nil, false
	}
	return list[int(n)], true
}

// truth is Python's.
func truth(x any) bool {
	switch x := x.(type) {
	case nil:
		return false
	case bool:
		return x
	case float64:
		return x != 0
	case string:
		return x != ""
	case []any:
		return len(x) > 0
	case map[string]any:
		return len(x) > 0
	}
	return true
}

// number is a number; true is 1, as in Python.
func number(x any) (float64, bool) {
	switch x := x.(type) {
	case float64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// DeepEqual compares lists and objects too.
func DeepEqual(x, y any) bool {
	switch x := x.(type) {
	case []any:
		list, ok := y.([]any)
		return ok && slices.EqualFunc(x, list, DeepEqual)
	case map[string]any:
		object, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, object, DeepEqual)
	}
	return equal(x, y)
}

func equal(x, y any) bool {
	a, isNumber := number(x)
	if b, also := number(y); isNumber && also {
		return a == b
	}
	switch x := x.(type) {
	case string:
		text, ok := y.(string)
		return ok && x == text
	case nil:
		return y == nil
	}
	return false
}

package tables

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// This file gives the layers of a config their operations, by the line of its class.

// measure notes the sizes of a tensor without a number, and the lengths of lists.
func (op *operating) measure(t *Tensor) {
	counted := false
	for i := range t.Name {
		if i == 0 || t.Name[i-1] != '.' {
			continue
		}
		part, _, _ := strings.Cut(t.Name[i:], ".")
		if n, err := strconv.Atoi(part); err == nil {
			key := "#n/" + t.Name[:i-1]
			known, _ := op.whole[key].(float64)
			op.whole[key], counted = max(known, float64(n+1)), true
		}
	}
	if !counted {
		for i, side := range t.Shape {
			op.whole[fmt.Sprintf("#t/%s/%d", t.Name, i)] = float64(side)
		}
	}
}

// layerOf is the layer that a tensor belongs to: the deepest one around it.
func (op *operating) layerOf(tensor string) string {
	pattern := paths.Starred(tensor)
	found, ok := op.stars[pattern]
	if !ok {
		found = pattern
		for op.at[found] == nil && found != "" {
			found = paths.Parent(found)
		}
		op.stars[pattern] = found
	}
	if found == "" {
		op.of.fail("%q is of no layer", tensor)
		return tensor
	}
	parts := strings.Count(found, ".") + 1
	return strings.Join(strings.SplitN(tensor, ".", parts+1)[:parts], ".")
}

// complete gives layers their operations, inputs and streams, and adds those without tensors.
func (op *operating) complete(layers []modelgraph.Layer, unit func(string) string) {
	for i := range layers {
		base := &layers[i]
		op.add(*base)
		numbers := numbersIn(base.Name)
		for _, pattern := range op.after[paths.Starred(base.Name)] {
			if !truth(op.on(base).eval(more(op.at[pattern])["there"], numbers)) {
				continue
			}
			made := modelgraph.Layer{Name: paths.Filled(pattern, paths.Numbers(base.Name)), Op: modelgraph.Opaque{}}
			if made.Unit = unit(made.Name); made.Unit == "" && strings.HasPrefix(made.Name, base.Name+".") {
				made.Unit = cmp.Or(base.Unit, base.Name)
			}
			op.add(made)
		}
	}
	op.index, op.tokens = make(map[string]int), make(map[string]int64)
	for i := range op.layers {
		op.index[op.layers[i].Name] = i
	}
	for i := range op.layers {
		op.compute(&op.layers[i])
	}
	for i := range op.layers {
		op.describe(&op.layers[i])
	}
	op.store()
	for i := range op.layers {
		layer := &op.layers[i]
		for j := range layer.Params {
			if slices.Contains(op.line.Frozen, paths.Starred(modelgraph.FullName(layer.Name, layer.Params[j].Name))) {
				layer.Params[j].Frozen = true
			}
		}
	}
	if !op.line.reviewed {
		op.freeze()
		op.used()
		op.rest()
	}
}

func (op *operating) add(layer modelgraph.Layer) {
	op.layers, op.named[layer.Name] = append(op.layers, layer), true
}

// on makes the sizes of a layer's tensors readable.
func (op *operating) on(layer *modelgraph.Layer) *evaluation {
	op.of.sizes = maps.Clone(op.whole)
	for _, list := range [][]modelgraph.Tensor{layer.Params, layer.Buffers} {
		for _, tensor := range list {
			op.of.sizes["#has/"+tensor.Name] = 1.0
			for i, side := range tensor.Shape {
				op.of.sizes["#s/"+tensor.Name+"/"+strconv.Itoa(i)] = float64(side)
			}
		}
	}
	return op.of
}

// compute finds a layer's operation.
func (op *operating) compute(layer *modelgraph.Layer) {
	row, of, stars := op.at[paths.Starred(layer.Name)], op.on(layer), numbersIn(layer.Name)
	if len(row) < 4 {
		of.fail("%q has no line", layer.Name)
		return
	}
	if kind, _ := of.eval(row[1], stars).(string); kind != "" {
		kinds, _ := row[2].(map[string]any)
		fields, _ := kinds[kind].(map[string]any)
		values := of.values(fields, stars)
		if epsilon := values["epsilon"]; fields["epsilon"] != nil {
			if n, ok := epsilon.(float64); !ok || n < 0 || n > maxNumber {
				op.lacks = append(op.lacks, fmt.Sprintf("%v %s is not a number from 0 to 1e30", fields["epsilon"], InJSON(epsilon))[1:])
				delete(values, "epsilon")
			}
		}
		made, ok := operation(kind, values)
		if !ok {
			of.fail("%q has no such operation", layer.Name)
			return
		}
		layer.Op = made
	} else if !op.line.reviewed && len(layer.Params) == 0 && len(layer.Buffers) > 0 {
		layer.Op = modelgraph.Parameter{}
	}
}

// describe finds a layer's inputs, tokens and declared costs.
func (op *operating) describe(layer *modelgraph.Layer) {
	own := op.fixed(layer.Name)
	row, of, stars := op.at[paths.Starred(layer.Name)], op.on(layer), numbersIn(layer.Name)
	if of.err != nil {
		return
	}
	layer.Inputs = op.inputs(row, stars)
	extra := more(row)
	if extra["stream"] != nil {
		layer.Stream.Kind, _ = of.eval(extra["stream"], stars).(string)
	}
	layer.Stream.Tokens = own
	if layer.Stream.Kind == modelgraph.Image {
		layer.Stream.Side, layer.Stream.Multiple = whole(of.eval(extra["side"], stars)), whole(of.eval(extra["multiple"], stars))
	}
	if extra["declared"] != nil && own == 0 {
		if own = op.before(layer.Inputs); own > 0 {
			op.on(layer)
		}
	}
	if own > 0 {
		of.sizes["#own"] = float64(own)
	}
	if i, ok := op.first(layer.Inputs); ok && len(layer.Params)+len(layer.Buffers) == 0 {
		for _, tensor := range append(slices.Clone(op.layers[i].Params), op.layers[i].Buffers...) {
			for d, side := range tensor.Shape {
				of.sizes["#p/"+tensor.Name+"/"+strconv.Itoa(d)] = float64(side)
			}
		}
	}
	if extra["repeat"] != nil {
		layer.Repeat = whole(of.eval(extra["repeat"], stars))
	}
	costs, _ := extra["declared"].(map[string]any)
	layer.Declared = declaredCosts(of.values(costs, stars))
}

// inputs are the layers that a layer reads.
func (op *operating) inputs(row []any, stars []int) []string {
	names := []string{}
	slots, _ := row[3].([]any)
	for _, slot := range slots {
		if name := op.input(slot, stars); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// before is that number of a layer's first input.
func (op *operating) before(inputs []string) int64 {
	if i, ok := op.first(inputs); ok {
		return op.fixed(op.layers[i].Name)
	}
	return 0
}

// first is the first of a layer's inputs.
func (op *operating) first(inputs []string) (int, bool) {
	for _, name := range inputs {
		if i, ok := op.index[name]; ok {
			return i, true
		}
	}
	return 0, false
}

// fixed is the number of tokens of a layer whose stream has a number of them, a sequence or an image; else 0.
func (op *operating) fixed(name string) int64 {
	if n, ok := op.tokens[name]; ok {
		return n
	}
	op.tokens[name] = 0 // a layer that reads itself has none
	layer := &op.layers[op.index[name]]
	row, stars := op.at[paths.Starred(name)], numbersIn(name)
	if extra := more(row); extra["tokens"] != nil {
		of := op.on(layer)
		if kind, _ := of.eval(extra["stream"], stars).(string); kind == modelgraph.Fixed || kind == modelgraph.Image {
			inputs := op.inputs(row, stars)
			before := op.before(inputs)
			op.on(layer)
			if conv, ok := layer.Op.(modelgraph.Conv); ok {
				of.sizes["#stride"] = float64(conv.Stride)
				if len(inputs) == 0 {
					before = of.pixels()
				}
			}
			if before > 0 {
				of.sizes["#in"] = float64(before)
			}
			op.tokens[name] = whole(of.eval(extra["tokens"], stars))
		}
	}
	return op.tokens[name]
}

// pixels are the pixels of a class's input image.
func (of *evaluation) pixels() int64 {
	for _, path := range []string{"image_size", "vision_config.image_size"} {
		switch side, _ := of.find(path); side := side.(type) {
		case float64:
			return int64(side * side)
		case []any:
			if len(side) > 0 {
				return whole(side[0]) * whole(side[len(side)-1])
			}
		}
	}
	return 224 * 224
}

// values are the fields that have a value.
func (of *evaluation) values(fields map[string]any, stars []int) map[string]any {
	out := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if v := of.eval(fields[name], stars); v != nil {
			out[name] = v
		}
	}
	return out
}

// input is the name of a layer's input: the first of several names that exists.
func (op *operating) input(slot any, stars []int) string {
	list, _ := slot.([]any)
	if len(list) == 4 && list[0] == "?" { // between slots
		if truth(op.of.eval(list[1], stars)) {
			return op.input(list[2], stars)
		}
		return op.input(list[3], stars)
	}
	if len(list) == 0 || list[0] != "first" {
		name, _ := op.of.eval(slot, stars).(string)
		return name
	}
	for _, expression := range list[1:] {
		if expression == nil {
			return ""
		}
		name, _ := op.of.eval(expression, stars).(string)
		if op.named[name] {
			return name
		}
	}
	op.of.fail("no layer to read is there")
	return ""
}

// operation is an op of its fields, by their names in model.json.
func operation(kind string, fields map[string]any) (modelgraph.Op, bool) {
	if kind == "attention" && fields["value_dim"] == fields["head_dim"] {
		delete(fields, "value_dim")
	}
	if kind == "attention" && fields["kv_heads"] == nil { // null: as many as heads
		fields["kv_heads"] = fields["heads"]
	}
	if turns := fields["turns"]; turns != nil { // a width that may be that of the whole head
		delete(fields, "turns")
		if whole(turns) < whole(fields["head_dim"]) {
			fields["turning"] = turns
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, false
	}
	if read := operations[kind]; read != nil {
		return read(text)
	}
	return nil, false
}

// operations read the kinds of operations.
var operations = map[string]func(text []byte) (modelgraph.Op, bool){
	"embedding": operationOf[modelgraph.Embedding], "norm": operationOf[modelgraph.Norm], "attention": operationOf[modelgraph.Attention],
	"mlp": operationOf[modelgraph.MLP], "moe": operationOf[modelgraph.MoE], "head": operationOf[modelgraph.Head],
	"linear": operationOf[modelgraph.Linear], "conv": operationOf[modelgraph.Conv], "state-space": operationOf[modelgraph.StateSpace],
	"rotary": operationOf[modelgraph.Rotary], "parameter": func([]byte) (modelgraph.Op, bool) { return modelgraph.Parameter{}, true },
}

func operationOf[kind modelgraph.Op](text []byte) (modelgraph.Op, bool) {
	var op kind
	err := json.Unmarshal(text, &op, json.RejectUnknownMembers(true))
	return op, err == nil
}

// declaredCosts are costs by their names in model.json, with a slash before their unit of growth.
func declaredCosts(costs map[string]any) *modelgraph.Declared {
	if len(costs) == 0 {
		return nil
	}
	made := modelgraph.NotDeclared()
	made.ActivationBytes, made.WorkspaceBytes, made.OutputBytes = 0, 0, 0
	growth := &made.Growth
	for name, to := range map[string]*int64{
		"activation_bytes": &made.ActivationBytes, "workspace_bytes": &made.WorkspaceBytes, "output_bytes": &made.OutputBytes,
		"activation_bytes/sequence": &growth.ActivationBytes.Sequence, "activation_bytes/token": &growth.ActivationBytes.Token, "activation_bytes/pair": &growth.ActivationBytes.Pair,
		"workspace_bytes/sequence": &growth.WorkspaceBytes.Sequence, "workspace_bytes/token": &growth.WorkspaceBytes.Token, "workspace_bytes/pair": &growth.WorkspaceBytes.Pair,
		"output_bytes/sequence": &growth.OutputBytes.Sequence, "output_bytes/token": &growth.OutputBytes.Token, "output_bytes/pair": &growth.OutputBytes.Pair,
	} {
		*to = whole(costs[name])
	}
	return &made
}

// maxNumber bounds numbers as model.json does.
const maxNumber = 1e30

func whole(v any) int64 {
	n, _ := number(v)
	return int64(math.Round(n))
}

func numbersIn(name string) (numbers []int) {
	for part := range strings.SplitSeq(name, ".") {
		if n, err := strconv.Atoi(part); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

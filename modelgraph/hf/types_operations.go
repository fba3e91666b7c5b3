package hf

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// The operations of the newest release's classes, as functions of config fields and tensor sizes
// (fixtures/oracle/operations.py finds them).
var (
	//go:embed types-operations.jsonl.gz
	typeOperationsGz   []byte
	typeOperationTable = embedded.New("types-operations.jsonl.gz", typeOperationsGz)
)

// typeOperations is the line of a model class.
type typeOperations struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// Layers are [name, kind of its op, fields of the op by kind, inputs, more]. A star in a name
	// is a number; more is a [typeLayer].
	Layers [][]any `json:"layers"`
	// Rules and Pins are as in [typeClass]. A key of an object may be left out.
	Rules map[string]any `json:"rules"`
	Pins  map[string]any `json:"pins"`
	// Like are other numbers: [field, whether it is nonzero].
	Like [][]any `json:"like"`
	// Texts are the allowed values of fields.
	Texts map[string][]any `json:"texts"`
	// Even are pairs of fields: an image's side and the patch side that must divide it.
	Even [][]string `json:"even"`
	// Linear are the modules that are nn.Linear.
	Linear []string `json:"linear"`
	// Own: softmax runs in the type of the scores, if these are in memory.
	Own bool `json:"own"`
}

// operationsOf finds the line of a class. Releases that build it unlike the newest have none.
func (in *release) operationsOf(class *typeClass) *typeOperations {
	if in.own != nil {
		return nil
	}
	if in.at != newest.at {
		alone := newest.alone()
		if same := alone.class(class.Class, class.Config); same == nil || !reflect.DeepEqual(same.built(), class.built()) {
			return nil
		}
	}
	for text := range typeOperationTable.Lines(fmt.Sprintf(`{"class":%q,"config":%q,`, class.Class, class.Config)) {
		found := new(typeOperations)
		typeOperationTable.Read(text, found)
		return found
	}
	return nil
}

// built is the built part of a class: releases may differ in which configs they refuse.
func (class *typeClass) built() typeClass {
	built := *class
	built.Texts, built.Met, built.Unread, built.Shown, built.Together, built.Pins = nil, nil, nil, nil, nil, nil
	return built
}

// operating gives layers of a tree their operations.
type operating struct {
	lists  bool // units without a number are modules outside of lists
	line   *typeOperations
	of     *evaluation
	whole  map[string]any // sizes of the tensors without a number in their names, and lengths of lists
	at     map[string][]any
	after  map[string][]string // layers without tensors, by the layer that they come after
	layers []modelgraph.Layer
	named  map[string]bool   // these
	stars  map[string]string // layers of tensors, both with stars
	index  map[string]int    // layers by name
	tokens map[string]int64  // of layers whose stream is fixed
	ties   map[string]string // owners of tied tensors
	still  string            // the first layer that no text reaches
}

// operations are the operations of a config; nil if the table does not know them.
func (tree *typeTree) operations(class *typeClass, root *typeObject) *operating {
	line := tree.in.operationsOf(class)
	if line == nil || !root.usual() {
		return nil
	}
	if !line.allows(root) {
		return nil
	}
	rules := maps.Clone(line.Rules)
	if rules == nil {
		rules = make(map[string]any)
	}
	maps.Copy(rules, class.Rules)
	of := &evaluation{object: root, rules: rules, known: make(map[string]any)}
	for path, values := range line.Texts {
		if v, ok := of.find(path); of.err != nil || ok && !allTexts(v, values) && !strings.Contains(path, "act") {
			return nil
		}
	}
	for _, pair := range line.Even {
		if !of.even(pair[0], pair[1]) {
			return nil
		}
	}
	op := &operating{line: line, of: of, whole: make(map[string]any), at: make(map[string][]any), after: make(map[string][]string), named: make(map[string]bool), stars: make(map[string]string), ties: tree.ties}
	for _, layer := range line.Layers {
		name, _ := layer[0].(string)
		op.at[name] = layer
		if base, ok := more(layer)["after"].(string); ok {
			op.after[base] = append(op.after[base], name)
		}
	}
	for i := range tree.tensors {
		op.measure(&tree.tensors[i])
	}
	return op
}

// allows reports a config with the fields of a build.
func (line *typeOperations) allows(root *typeObject) bool {
	for path, want := range line.Pins {
		v, _ := root.get(path)
		if !deepEqual(v, want) && v != nil { // null: the class makes the default of it
			return false
		}
	}
	for _, like := range line.Like {
		path, _ := like[0].(string)
		if v, _ := root.get(path); truth(v) != truth(like[1]) {
			return false
		}
	}
	return line.sees(layerKinds) || line.oneKind(root)
}

// sees reports that operations depend on a field, or that its texts are known.
func (line *typeOperations) sees(field string) bool {
	for path := range line.Texts {
		if strings.HasSuffix(path, field) {
			return true
		}
	}
	return strings.Contains(fmt.Sprint(line.Layers, line.Rules), "$"+field)
}

// oneKind reports that a file's layers are all of the operations' kind: with a window, or without.
func (line *typeOperations) oneKind(obj *typeObject) bool {
	kind := "full_attention"
	if strings.Contains(fmt.Sprint(line.Layers), "window:") {
		kind = "sliding_attention"
	}
	list, _ := obj.said[layerKinds].([]any)
	other := func(x any) bool { return x != kind }
	return !slices.ContainsFunc(list, other) && !slices.ContainsFunc(slices.Collect(maps.Values(obj.inner)), func(inner *typeObject) bool { return !line.oneKind(inner) })
}

// even reports that the sides of an image are multiples of a patch's.
func (of *evaluation) even(image, patch string) bool {
	x, _ := of.find(image)
	y, _ := of.find(patch)
	rest, ok := ofTwo("%", first(x), first(y))
	return ok && rest == 0.0 || x == nil || y == nil
}

func first(x any) any {
	if list, ok := x.([]any); ok && len(list) > 0 {
		return list[0]
	}
	return x
}

// usual reports that all objects inside are of the types that they have by default.
func (obj *typeObject) usual() bool {
	for name, inner := range obj.inner {
		if inner == nil || inner.class.Config != obj.class.Inner[name].Config || !inner.usual() {
			return false
		}
	}
	return true
}

func more(layer []any) map[string]any {
	if len(layer) < 5 {
		return nil
	}
	found, _ := layer[4].(map[string]any)
	return found
}

// operatingGraph is the graph with operations; false if some are unknown or do not fit the tensors.
func (tree *typeTree) operatingGraph(class *typeClass, dtype modelgraph.DType, name string) (*modelgraph.Graph, bool) {
	empty := func(t typeTensor) bool { return !t.buffer && slices.Contains(t.shape, 0) }
	op := tree.operations(class, tree.root)
	if op == nil || slices.ContainsFunc(tree.tensors, empty) {
		return nil, false
	}
	layers := tree.layers(class, dtype, op)
	if op.of.err != nil {
		return nil, false
	}
	if op.line.Own {
		tree.root.ownScores(layers)
	}
	if newer("5.21", tree.in.name) {
		capUnread(layers)
	}
	if op.linears(layers) {
		tree.linear = op.line.Linear
	}
	graph, err := modelgraph.New(name, layers, tree.tied())
	if err == nil && op.still != "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("a step is of text alone: %q and all else that text does not reach hold their weights, without gradients and states", op.still))
	}
	return graph, err == nil
}

// ownScores sets softmax in the type of the scores, with or without a dropout of its result.
func (obj *typeObject) ownScores(layers []modelgraph.Layer) {
	dropped := false
	for _, name := range []string{"attention_probs_dropout_prob", "attention_dropout", "attn_pdrop"} {
		rate, _ := obj.values[cmp.Or(obj.class.Alias[name], name)].(float64)
		dropped = dropped || rate > 0
	}
	for i := range layers {
		if op, ok := layers[i].Op.(modelgraph.Attention); ok {
			op.OwnScores, op.InnerDropout = true, dropped
			layers[i].Op = op
		}
	}
}

// capUnread has SDPA run attention with a soft cap, as before Transformers 5.21 ([gemma2]).
func capUnread(layers []modelgraph.Layer) {
	for i := range layers {
		if op, ok := layers[i].Op.(modelgraph.Attention); ok && op.SoftCap {
			op.Eager = false
			layers[i].Op = op
		}
	}
}

// linears reports that [storedFormat.tensors] takes exactly the weights of linear layers.
func (op *operating) linears(layers []modelgraph.Layer) bool {
	for i := range layers {
		switch layers[i].Op.(type) {
		case modelgraph.Embedding, modelgraph.Norm, modelgraph.Rotary, modelgraph.Parameter, modelgraph.Opaque:
			continue
		}
		for _, tensor := range layers[i].Params {
			module := parent(modelgraph.FullName(layers[i].Name, tensor.Name))
			taken := len(tensor.Shape) == 2 && lastComponent(tensor.Name) == "weight" && !notLinear[lastComponent(module)]
			if taken != slices.Contains(op.line.Linear, starred(module)) && lastComponent(tensor.Name) == "weight" {
				return false
			}
		}
	}
	return true
}

// longest is the longest sequence that a config names.
func (obj *typeObject) longest() int64 {
	for _, name := range []string{"max_position_embeddings", "max_target_positions"} {
		for _, of := range []*typeObject{obj, obj.inner["text_config"]} {
			if of == nil {
				continue
			}
			if n, ok := of.values[cmp.Or(of.class.Alias[name], name)].(float64); ok && n > 0 {
				return int64(n)
			}
		}
	}
	return 0
}

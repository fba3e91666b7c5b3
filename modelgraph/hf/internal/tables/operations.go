package tables

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// The operations of the newest release's classes, as functions of config fields and tensor sizes
// (fixtures/oracle/operations.py finds them).
var (
	//go:embed types-operations.jsonl.gz
	typeOperationsGz   []byte
	typeOperationTable = embedded.New("types-operations.jsonl.gz", typeOperationsGz)

	// Operations that were compared with measured steps, in the same form. They hold in all releases
	// (fixtures/oracle/README.md says where they are from).
	//go:embed types-reviewed.jsonl.gz
	typeReviewedGz    []byte
	typeReviewedTable = embedded.New("types-reviewed.jsonl.gz", typeReviewedGz)
)

// typeOperations is the line of a model class.
type typeOperations struct {
	Class  string `json:"class"`
	Config string `json:"config"` // its config class
	// Layers are [name, kind of its op, fields of the op by kind, inputs, more]. A star in a name
	// is a number; more is a [typeLayer].
	Layers [][]any `json:"layers"`
	// Rules and Pins are as in [Class]. A key of an object may be left out.
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
	// Longest, Joined and Hollow are as in [modelgraph.Graph], of reviewed classes. Layers have stars.
	Longest any        `json:"longest"`
	Units   []string   `json:"units"` // patterns of the units with several layers
	Joined  [][]string `json:"joined"`
	Hollow  []string   `json:"hollow"`
	// Frozen are parameters that no gradient reaches, with stars.
	Frozen []string `json:"frozen"`
	// Runs: the layers have everything for running, not for costs alone, if fields have one of the
	// values in Knows.
	Runs  bool             `json:"runs"`
	Knows map[string][]any `json:"knows"`

	reviewed bool
}

// operationsOf finds the line of a class. Releases that build it unlike the newest have none.
func (in *Release) operationsOf(class *Class) *typeOperations {
	if in.own != nil {
		return nil
	}
	if line := class.reviewed(); line != nil {
		return line
	}
	if in.At != Newest.At {
		alone := Newest.Alone()
		if same := alone.Class(class.Class, class.Config); same == nil || !reflect.DeepEqual(same.built(), class.built()) {
			return nil
		}
	}
	return embedded.First[typeOperations](typeOperationTable, class.head())
}

// IsReviewed reports a class whose operations are reviewed.
func (class *Class) IsReviewed() bool { return class.reviewed() != nil }

// reviewed is the line of a class whose operations are reviewed, nil for others.
func (class *Class) reviewed() *typeOperations {
	found := embedded.First[typeOperations](typeReviewedTable, class.head())
	if found != nil {
		found.reviewed = true
	}
	return found
}

func (class *Class) head() string {
	return fmt.Sprintf(`{"class":%q,"config":%q,`, class.Class, class.Config)
}

// built is the built part of a class: releases may differ in which configs they refuse.
func (class *Class) built() Class {
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
	lacks  []string          // what running needs and the config lacks
	still  string            // the first layer that no text reaches
}

// operations are the operations of a config; nil if the table does not know them.
func (tree *Tree) operations(class *Class, root *Object) *operating {
	line := tree.in.operationsOf(class)
	if line == nil || !root.usual() || !line.allows(root) {
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
	op := &operating{line: line, of: of, whole: make(map[string]any), at: make(map[string][]any), after: make(map[string][]string), named: make(map[string]bool), stars: make(map[string]string), ties: tree.Ties}
	for _, layer := range line.Layers {
		name, _ := layer[0].(string)
		op.at[name] = layer
		if base, ok := more(layer)["after"].(string); ok {
			op.after[base] = append(op.after[base], name)
		}
	}
	for i := range tree.Tensors {
		op.measure(&tree.Tensors[i])
	}
	return op
}

// allows reports a config with the fields of a build.
func (line *typeOperations) allows(root *Object) bool {
	for path, want := range line.Pins {
		v, _ := root.get(path)
		if !DeepEqual(v, want) && v != nil { // null: the class makes the default of it
			return false
		}
	}
	for _, like := range line.Like {
		path, _ := like[0].(string)
		if v, _ := root.get(path); v != nil && truth(v) != truth(like[1]) { // null: the class makes the default of it
			return false
		}
	}
	return line.sees(layerKinds) || line.oneKind(root)
}

// sees reports that operations depend on a field, or that its texts are known.
func (line *typeOperations) sees(field string) bool {
	known := func(path string) bool { return strings.HasSuffix(path, field) }
	return slices.ContainsFunc(slices.Collect(maps.Keys(line.Texts)), known) || strings.Contains(fmt.Sprint(line.Layers, line.Rules), "$"+field)
}

// oneKind reports that a file's layers are all of the operations' kind: with a window, or without.
func (line *typeOperations) oneKind(obj *Object) bool {
	kind := "full_attention"
	if strings.Contains(fmt.Sprint(line.Layers), "window:") {
		kind = "sliding_attention"
	}
	list, _ := obj.said[layerKinds].([]any)
	other := func(x any) bool { return x != kind }
	return !slices.ContainsFunc(list, other) && !slices.ContainsFunc(slices.Collect(maps.Values(obj.inner)), func(inner *Object) bool { return !line.oneKind(inner) })
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
func (obj *Object) usual() bool {
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

// operatingGraph is the graph with operations, as the release of the config runs them; false if some are unknown or do not fit the tensors.
func (tree *Tree) operatingGraph(class *Class, dtype modelgraph.DType, name string, said *Release) (*modelgraph.Graph, bool) {
	empty := func(t Tensor) bool { return !t.Buffer && slices.Contains(t.Shape, 0) }
	op := tree.operations(class, tree.Root)
	if op == nil || slices.ContainsFunc(tree.Tensors, empty) {
		return nil, false
	}
	layers := tree.Layers(class, dtype, op)
	if op.of.err != nil {
		return nil, false
	}
	if op.line.Own {
		tree.Root.ownScores(layers)
	}
	said.older(class.Config, layers)
	if op.linears(layers) {
		tree.linear = op.line.Linear
	}
	graph, err := modelgraph.New(name, layers, tree.Tied())
	if err == nil && op.line.reviewed {
		tree.Reviewed, tree.Runs = op.describes(graph) == nil, op.line.Runs
		return graph, tree.Reviewed
	}
	if err == nil && op.still != "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("a step is of text alone: %q and all else that text does not reach hold their weights, without gradients and states", op.still))
	}
	return graph, err == nil
}

// describes gives a reviewed class's graph what its line says of the whole model.
func (op *operating) describes(graph *modelgraph.Graph) error {
	op.of.sizes = op.whole
	graph.MaxSeq, graph.Hollow, graph.Unknown = whole(op.of.eval(op.line.Longest, nil)), op.line.Hollow, op.unknown()
	joined := make([][]string, len(op.line.Joined))
	for i := range graph.Layers {
		for j, patterns := range op.line.Joined {
			if name := graph.Layers[i].Name; slices.Contains(patterns, paths.Starred(name)) {
				joined[j] = append(joined[j], name)
			}
		}
	}
	alone := func(names []string) bool { return len(names) < 2 }
	return cmp.Or(op.of.err, modelgraph.Join(graph, slices.DeleteFunc(joined, alone)))
}

// unknown are values of the config that devmap's engine does not know.
func (op *operating) unknown() []string {
	obj := op.of.object
	for path, known := range op.line.Knows {
		v, said := obj.values[path]
		if !said {
			v, said = obj.Extra[path]
		}
		if said && !slices.ContainsFunc(known, func(one any) bool { return DeepEqual(v, one) }) {
			op.lacks = append(op.lacks, fmt.Sprintf("%s %s is not known here (known: %s)", path, InJSON(v), strings.NewReplacer("[", "", "]", "", `"`, "").Replace(InJSON(known))))
		}
	}
	slices.Sort(op.lacks)
	return slices.Compact(op.lacks)
}

// unitOf gives the unit of a name of a reviewed class.
func (line *typeOperations) unitOf(name string) string {
	for i := range name {
		if name[i] == '.' && slices.Contains(line.Units, paths.Starred(name[:i])) {
			return name[:i]
		}
	}
	return ""
}

// ownScores sets softmax in the type of the scores, with or without a dropout of its result.
func (obj *Object) ownScores(layers []modelgraph.Layer) {
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

// older changes attention to what a release before the newest runs. SDPA ran with a soft cap before
// 5.21 ([gemma2]), copied no bias of T5's kind before 5.20, and GPT-J had none before 5.24.
func (in *Release) older(config string, layers []modelgraph.Layer) {
	gptJ := Newer("5.24", in.Name) && (config == "GPTJConfig" || config == "CodeGenConfig")
	for i := range layers {
		op, ok := layers[i].Op.(modelgraph.Attention)
		if !ok {
			continue
		}
		if op.SoftCap && Newer("5.21", in.Name) {
			op.Eager = false
		}
		if Newer("5.20", in.Name) {
			op.BiasCopied = false
		}
		if gptJ {
			op.Eager, op.FP32Scores = true, true
		}
		layers[i].Op = op
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
			module := paths.Parent(modelgraph.FullName(layers[i].Name, tensor.Name))
			taken := len(tensor.Shape) == 2 && paths.Last(tensor.Name) == "weight" && !paths.NotLinear[paths.Last(module)]
			if taken != slices.Contains(op.line.Linear, paths.Starred(module)) && paths.Last(tensor.Name) == "weight" {
				return false
			}
		}
	}
	return true
}

// longest is the longest sequence that a config names.
func (obj *Object) longest() int64 {
	for _, name := range []string{"max_position_embeddings", "max_target_positions"} {
		for _, of := range []*Object{obj, obj.inner["text_config"]} {
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

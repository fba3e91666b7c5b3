package engine

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
	"github.com/devmap-dev/devmap/modelgraph"
)

// module is a framework module with DeepSpeed's hooks, its own parameters, and its calls in order.
type module struct {
	id     int
	params []int
	calls  []*module
	layer  int    // of the graph, or -1: a container of several
	below  string // its path below the layer; "-": a part without one of its own
	// block: it is recomputed. still: no gradient passes its output.
	block, still bool
}

// modules builds the tree of a model's modules from the paths of its layers.
type modules struct {
	model  *layers.Model
	trace  *zero.Trace
	limit  int64 // elements up to which a parameter persists
	ids    int
	params map[string]int // by the owner's name
	rotary bool           // it has one, not yet called
	open   []*module      // from the root to the module last entered
	paths  []string       // theirs
}

// modulesOf is the root of the model's modules as its forward enters them.
func modulesOf(model *layers.Model, limit int64) (*module, *zero.Trace) {
	build := modules{model: model, trace: new(zero.Trace), limit: limit, params: make(map[string]int)}
	root := build.module(-1)
	top := root
	if model.Frozen { // PeftModel and LoraModel around the model
		for range 2 {
			inner := build.module(-1)
			top.calls = append(top.calls, inner)
			top = inner
		}
	}
	build.open, build.paths = []*module{top}, []string{""}
	for i := range model.Layers {
		_, ok := model.Layers[i].Op.(modelgraph.Rotary)
		build.rotary = build.rotary || ok
	}
	for unit := range model.Graph.Units {
		for _, i := range model.Unit(unit) {
			if layer := &model.Layers[i]; layer.Runs {
				build.layer(i, len(model.Unit(unit)) > 1)
			}
		}
	}
	return root, build.trace
}

func (build *modules) module(layer int) *module {
	build.ids++
	return &module{id: build.ids, layer: layer, below: "-"}
}

// layer adds a layer below the containers of its path.
func (build *modules) layer(i int, ofBlock bool) {
	layer := &build.model.Layers[i]
	if _, rotary := layer.Op.(modelgraph.Rotary); rotary {
		return // it follows the blocks, and runs after the embedding
	}
	below := build.enter(layer.Name, ofBlock)
	node := build.module(i)
	node.below = ""
	node.still = build.model.Frozen && !layer.Shape.InputGrad && len(layer.Whole.Adapters) == 0
	below.calls = append(below.calls, node)
	inner := map[string]*module{"": node}
	for j := range layer.Params {
		dir := parent(layer.Params[j].Name)
		at, ok := inner[dir]
		if !ok {
			at = build.projection(layer, i, dir, node)
			inner[dir] = at
		}
		at.params = append(at.params, build.param(layer, j))
	}
	if _, ok := layer.Op.(modelgraph.Embedding); ok && build.rotary {
		build.rotary = false
		rotary := build.module(-1)
		rotary.still = true
		below.calls = append(below.calls, rotary)
	}
	follow(node, "q_norm", "q_proj")
	follow(node, "k_norm", "k_proj")
	if _, ok := layer.Op.(modelgraph.MLP); ok && len(node.calls) > 1 { // the activation
		node.calls = append(node.calls[:1], append([]*module{build.module(i)}, node.calls[1:]...)...)
	}
}

// follow moves a call to its real place, after another call (modeling_qwen3.py,
// Qwen3Attention.forward): the graph lists parameters by type.
func follow(node *module, name, behind string) {
	from := slices.IndexFunc(node.calls, func(next *module) bool { return next.below == name })
	to := slices.IndexFunc(node.calls, func(next *module) bool { return next.below == behind })
	if from < 0 || to < 0 {
		return
	}
	moved := node.calls[from]
	node.calls = slices.Insert(slices.Delete(node.calls, from, from+1), to+1, moved)
}

// projection adds a module of a layer, and is the one that holds the weights:
// the base layer if it has an adapter (peft/tuners/lora/layer.py).
func (build *modules) projection(layer *layers.Layer, i int, dir string, node *module) *module {
	at := build.module(i)
	at.below = dir
	node.calls = append(node.calls, at)
	at.still = build.model.Frozen && !layer.Shape.InputGrad && (len(layer.Whole.Adapters) == 0 || !build.leadsBack(i, dir))
	for k := range layer.Whole.Adapters {
		adapter := &layer.Whole.Adapters[k]
		if adapter.Module != dir {
			continue
		}
		base, dropout, a, b := build.module(i), build.module(i), build.module(i), build.module(i)
		base.still, dropout.still, at.still = at.still, at.still, false
		a.params = []int{build.add(adapter.Rank*adapter.In, build.model.AdapterCompute(), false)}
		b.params = []int{build.add(adapter.Out*adapter.Rank, build.model.AdapterCompute(), false)}
		at.calls = []*module{base, dropout, a, b}
		return base
	}
	return at
}

// leadsBack reports that a projection reads what others of its layer made.
func (build *modules) leadsBack(i int, below string) bool {
	for _, linear := range layers.Projections(build.model.Graph, i) {
		if linear.Below == below {
			return linear.Output
		}
	}
	return false
}

// enter returns the container of a layer. Earlier containers that do not hold the layer have returned.
func (build *modules) enter(name string, ofBlock bool) *module {
	dirs := []string{""}
	for k, letter := range name {
		if letter == '.' {
			dirs = append(dirs, name[:k])
		}
	}
	depth := 1
	for depth < len(build.paths) && contains(dirs, build.paths[depth]) {
		depth++
	}
	build.open, build.paths = build.open[:depth], build.paths[:depth]
	for k, dir := range dirs {
		list := k+1 < len(dirs) && number(dirs[k+1][len(dir):]) || k+1 == len(dirs) && number(name[len(dir):])
		if contains(build.paths, dir) || list {
			continue // a list of modules is not called itself
		}
		container := build.module(-1)
		container.block = ofBlock && number(dir[len(parent(dir)):])
		above := build.open[len(build.open)-1]
		above.calls = append(above.calls, container)
		build.open, build.paths = append(build.open, container), append(build.paths, dir)
	}
	return build.open[len(build.open)-1]
}

// param is the place of a parameter in the trace; tied ones are one.
func (build *modules) param(layer *layers.Layer, j int) int {
	tensor := &layer.Params[j]
	owner := tensor.Owner
	if owner == "" {
		owner = modelgraph.FullName(layer.Name, tensor.Name)
	}
	if at, ok := build.params[owner]; ok {
		return at
	}
	numel := tensor.Numel
	each := ops.WeightBytes(build.model.Rules.Compute)
	if numel > 0 {
		each = max(1, layer.Whole.Stored(j)/numel)
	}
	at := build.add(numel, each, build.model.Frozen)
	build.params[owner] = at
	return at
}

func (build *modules) add(numel, each int64, frozen bool) int {
	build.trace.Params = append(build.trace.Params, zero.Parameter{Numel: numel, Bytes: each, Frozen: frozen, Persistent: numel <= build.limit})
	return len(build.trace.Params) - 1
}

// parent is a path without its last part.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

// number reports that a part of a path is a list index.
func number(part string) bool {
	part = strings.TrimPrefix(part, ".")
	if dot := strings.IndexByte(part, '.'); dot >= 0 {
		part = part[:dot]
	}
	return part != "" && strings.Trim(part, "0123456789") == ""
}

func contains(all []string, one string) bool {
	for _, each := range all {
		if each == one {
			return true
		}
	}
	return false
}

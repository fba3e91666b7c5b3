package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/devmap-dev/devmap/modelgraph"
)

// onnxLayers turns nodes into layers. A node with weights is a layer, or a part of the layer of its
// module. Every other node belongs to the last layer that it reads. So layers read only earlier
// layers.
type onnxLayers struct {
	graph   *onnxGraph
	weights map[string]*onnxTensor
	of      map[string]int // layer of a value
	owner   map[string]int // layer of a weight
	readers map[string]map[int]bool
	index   map[string]int // layer of a module
	layers  []modelgraph.Layer
	named   map[string]bool
	paths   []string // of the layers, before any was renamed
	total   int64
	alive   []onnxAlive
	ends    map[string]int    // the node that reads a value last
	alias   map[string]string // from a view's value to the one that it views
	unsized int
	symbols map[string]bool
}

// onnxAlive has the bytes of a layer's results in one run.
type onnxAlive struct {
	now, most, all, out int64
	inputs              map[int]bool
}

const sharedBytes = 1 << 20 // a weight of this size keeps its layers on one device

// onnxViews need no memory: the runtime gives their result the memory of their input.
var onnxViews = []string{"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"}

// layers checks the graph and returns the graph of its layers.
func (graph *onnxGraph) layers(path string, dims map[string]int64) (*modelgraph.Graph, error) {
	if err := graph.sorted(nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	run := &onnxLayers{
		graph: graph, weights: map[string]*onnxTensor{}, of: map[string]int{}, owner: map[string]int{}, readers: map[string]map[int]bool{},
		index: map[string]int{}, named: map[string]bool{}, ends: map[string]int{}, alias: map[string]string{}, symbols: map[string]bool{},
	}
	for _, weight := range graph.weights {
		run.weights[weight.name] = weight
	}
	for at, node := range graph.nodes {
		for _, name := range node.reads() {
			run.ends[run.root(name)] = at
		}
		if slices.Contains(onnxViews, node.kind) && len(node.inputs) > 0 && len(node.outputs) > 0 {
			run.alias[node.outputs[0]] = node.inputs[0]
		}
	}
	for _, name := range graph.outputs {
		run.ends[run.root(name)] = len(graph.nodes)
	}
	for at, node := range graph.nodes {
		if err := run.add(at, node); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return run.result(path, dims)
}

func (run *onnxLayers) root(name string) string {
	for range maxTensorDims {
		above, ok := run.alias[name]
		if !ok {
			break
		}
		name = above
	}
	return name
}

// add assigns a node to its layer.
func (run *onnxLayers) add(at int, node *onnxNode) error {
	var own []*onnxTensor
	last := -1
	for _, name := range node.reads() {
		if weight, ok := run.weights[name]; ok {
			own = append(own, weight)
		}
		if from, ok := run.of[name]; ok {
			last = max(last, from)
		}
	}
	inner := node.inner()
	layer := run.layerOf(at, node, own, inner, last)
	for _, weight := range own {
		if readers := run.readers[weight.name]; readers != nil {
			readers[layer] = true
			continue
		}
		run.readers[weight.name] = map[int]bool{layer: true}
		run.hold(layer, weight)
	}
	for k, weight := range inner {
		inside := *weight
		inside.name = fmt.Sprintf("%s.%d", weight.name, at+k)
		run.hold(layer, &inside)
	}
	return run.live(at, node, layer)
}

func (run *onnxLayers) layerOf(at int, node *onnxNode, own, inner []*onnxTensor, last int) int {
	fresh := slices.ContainsFunc(own, func(weight *onnxTensor) bool { return run.readers[weight.name] == nil && len(weight.shape) > 0 })
	if !fresh && len(inner) == 0 && last >= 0 {
		return last
	}
	path := modulePath(at, node, own)
	if found, ok := run.index[path]; ok && found >= last {
		return found
	}
	name := path
	for k := len(run.layers); run.named[name]; k++ {
		name = fmt.Sprintf("%s#%d", path, k)
	}
	run.named[name] = true
	run.paths = append(run.paths, name)
	declared := modelgraph.NotDeclared()
	run.layers = append(run.layers, modelgraph.Layer{Name: name, Op: modelgraph.Opaque{}, Declared: &declared, Inputs: []string{}})
	run.alive = append(run.alive, onnxAlive{inputs: map[int]bool{}})
	run.index[path] = len(run.layers) - 1
	return len(run.layers) - 1
}

// hold gives a weight to a layer. Its name is relative to the layer's.
func (run *onnxLayers) hold(layer int, weight *onnxTensor) {
	name := run.relative(layer, weight)
	if _, owned := run.owner[weight.name]; !owned {
		run.owner[weight.name] = layer
	}
	run.layers[layer].Params = append(run.layers[layer].Params, modelgraph.Tensor{Name: name, Shape: weight.shape, DType: weight.dtype})
}

func (run *onnxLayers) relative(layer int, weight *onnxTensor) string {
	return strings.TrimPrefix(weight.name, run.paths[layer]+".")
}

// live counts a node's results, and ends those that it is the last to read.
func (run *onnxLayers) live(at int, node *onnxNode, layer int) error {
	for _, name := range node.reads() {
		if from, ok := run.of[name]; ok && from != layer {
			run.alive[layer].inputs[from] = true
		}
	}
	for _, name := range node.outputs {
		run.of[name] = layer
		if _, view := run.alias[name]; view || name == "" {
			continue
		}
		size, err := run.size(name)
		if err != nil {
			return err
		}
		one := &run.alive[layer]
		one.now, one.all = one.now+size, one.all+size
		one.most = max(one.most, one.now)
		if run.total += size; run.total > maxResults {
			return fmt.Errorf("node %q: its results have more than %d bytes", cmp.Or(node.name, node.kind), maxResults)
		}
	}
	for _, body := range node.bodies {
		one := &run.alive[layer]
		one.most = max(one.most, one.now+body.work())
	}
	for _, name := range node.reads() {
		root := run.root(name)
		if from, ok := run.of[root]; ok && run.ends[root] == at {
			size, _ := run.size(root)
			run.alive[from].now -= size
			run.ends[root] = -1 // once
		}
	}
	return nil
}

const maxResults = int64(1) << 56 // of all results together

// work returns the bytes of all results of a subgraph at once: an upper bound.
func (graph *onnxGraph) work() (total int64) {
	for _, node := range graph.nodes {
		for _, name := range node.outputs {
			size, _ := sizeOf(graph.values[name])
			total = min(total+size, maxResults)
		}
		for _, body := range node.bodies {
			total = min(total+body.work(), maxResults)
		}
	}
	return total
}

// size returns the bytes of a value. They are 0 if its shape is not known, which is recorded.
func (run *onnxLayers) size(name string) (int64, error) {
	value := run.graph.values[name]
	size, err := sizeOf(value)
	if size < 0 {
		run.unsized++
		if value != nil {
			for _, symbol := range value.symbols {
				run.symbols[symbol] = true
			}
		}
	}
	return max(0, size), err
}

// sizeOf returns the bytes of a value, -1 if its shape or type is not known.
func sizeOf(value *onnxTensor) (int64, error) {
	if value == nil || !value.known || len(value.symbols) > 0 || value.dtype.Bits() == 0 {
		return -1, nil
	}
	measured, err := modelgraph.NewTensor(value.name, value.dtype, value.shape...)
	return measured.Bytes, err
}

// result returns the graph of the layers.
func (run *onnxLayers) result(path string, dims map[string]int64) (*modelgraph.Graph, error) {
	if len(run.layers) == 0 {
		run.layers, run.alive, run.paths = []modelgraph.Layer{{Name: "graph", Op: modelgraph.Opaque{}}}, []onnxAlive{{}}, []string{"graph"}
	}
	for _, weight := range run.graph.weights {
		if run.readers[weight.name] == nil {
			run.readers[weight.name] = map[int]bool{0: true}
			run.hold(0, weight)
		}
	}
	run.outputs()
	run.apart()
	copies, err := run.finish()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	graph, err := modelgraph.New(name, run.layers, run.ties())
	var fault *modelgraph.SyntaxError
	switch {
	case errors.As(err, &fault):
		return nil, &modelgraph.SyntaxError{File: path, Place: fault.Place, Msg: fault.Msg}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	graph.Warnings = append(graph.Warnings, "ONNX describes inference: results count as the graph makes them, without what a runtime fuses, and a step of training is not known")
	if run.unsized > 0 {
		graph.Warnings = append(graph.Warnings, run.unknown())
	}
	if copies > 0 {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("weights of %s are read by several layers and counted once: a GPU that reads them from another one has a copy", humanize.IBytes(copies)))
	}
	if len(dims) > 0 {
		var said []string
		for _, name := range slices.Sorted(maps.Keys(dims)) {
			said = append(said, fmt.Sprintf("%s=%d", name, dims[name]))
		}
		graph.Warnings = append(graph.Warnings, "results were counted with "+strings.Join(said, ", ")+": --batch and --seq do not change them")
	}
	return graph, nil
}

// apart renames layers that have others inside: a module's own code becomes a layer next to them.
func (run *onnxLayers) apart() {
	above := map[string]bool{}
	for _, path := range run.paths {
		for at, char := range path {
			if char == '.' {
				above[path[:at]] = true
			}
		}
	}
	for i := range run.layers {
		name := run.layers[i].Name
		for above[name] || name != run.layers[i].Name && run.named[name] {
			name += ".forward"
		}
		run.named[name], run.layers[i].Name = true, name
	}
}

// unknown describes which sizes are not counted.
func (run *onnxLayers) unknown() string {
	delete(run.symbols, "?")
	help := "onnx.shape_inference.infer_shapes adds shapes to a file"
	if len(run.symbols) > 0 {
		names := slices.Sorted(maps.Keys(run.symbols))
		help = "give symbolic dimensions a number, as --dim " + names[0] + "=1"
		if len(names) > 1 {
			help += " (also " + strings.Join(names[1:min(len(names), 6)], ", ") + ")"
		}
	}
	return fmt.Sprintf("%d results have no known size and are not counted: %s", run.unsized, help)
}

// outputs counts the bytes of a layer that other layers, or the graph's outputs, read.
func (run *onnxLayers) outputs() {
	outer := map[string]bool{}
	for _, name := range run.graph.outputs {
		outer[run.root(name)] = true
	}
	for _, node := range run.graph.nodes {
		if len(node.outputs) == 0 {
			continue
		}
		layer := run.of[node.outputs[0]]
		for _, name := range node.reads() {
			if from, ok := run.of[run.root(name)]; ok && from != layer {
				outer[run.root(name)] = true
			}
		}
	}
	for name := range outer {
		if layer, ok := run.of[name]; ok {
			size, _ := sizeOf(run.graph.values[name])
			run.alive[layer].out += max(0, size)
		}
	}
}

// finish sets the layers' declared bytes, and returns the bytes of weights that a second layer
// reads.
func (run *onnxLayers) finish() (copies uint64, err error) {
	for i := range run.layers {
		layer, alive := &run.layers[i], &run.alive[i]
		if layer.Declared == nil {
			declared := modelgraph.NotDeclared()
			layer.Declared, layer.Inputs = &declared, []string{}
		}
		layer.Declared.OutputBytes, layer.Declared.ActivationBytes = alive.out, alive.all
		layer.Declared.WorkspaceBytes = max(0, alive.most-alive.out)
		for _, from := range slices.Sorted(maps.Keys(alive.inputs)) {
			layer.Inputs = append(layer.Inputs, run.layers[from].Name)
		}
	}
	for _, weight := range run.graph.weights {
		if len(run.readers[weight.name]) > 1 && !run.tied(weight) {
			measured, failed := modelgraph.NewTensor(weight.name, weight.dtype, weight.shape...)
			copies, err = copies+uint64(max(0, measured.Bytes)), cmp.Or(err, failed)
		}
	}
	return copies, err
}

// tied reports whether one device holds all layers of a weight: a large one that a few layers read.
func (run *onnxLayers) tied(weight *onnxTensor) bool {
	size, _ := sizeOf(&onnxTensor{name: weight.name, shape: weight.shape, dtype: weight.dtype, known: true})
	return size >= sharedBytes && len(run.readers[weight.name]) <= 4 && weight.dtype.Float()
}

// ties adds shared weights to their other layers. The first one owns the memory.
func (run *onnxLayers) ties() [][]string {
	var ties [][]string
	for _, weight := range run.graph.weights {
		if len(run.readers[weight.name]) < 2 || !run.tied(weight) {
			continue
		}
		var names []string
		for _, layer := range slices.Sorted(maps.Keys(run.readers[weight.name])) {
			if layer != run.owner[weight.name] {
				run.hold(layer, weight)
			}
			names = append(names, modelgraph.FullName(run.layers[layer].Name, run.relative(layer, weight)))
		}
		ties = append(ties, names)
	}
	return ties
}

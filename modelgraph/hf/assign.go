package hf

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// assignment joins the tensors of a graph and of a checkpoint.
type assignment struct {
	graph  *modelgraph.Graph
	ties   [][]string
	names  *loading
	ck     *safetensors.Checkpoint
	config *config

	state   map[string]*filling // state dict of the module
	order   []*filling          // the same, in module order
	modules map[string]int      // module path to layer
	// extras are quantised tensors next to or instead of the module's own, by name.
	extras     map[string]*filling
	extraOrder []*filling
	quantised  map[string]bool // modules with extras
	configured bool            // the config has quantization_config

	missing             tally
	unexpected, ignored tally
	warnings            []string
}

// filling is one tensor of a module and its stored pieces.
type filling struct {
	name   string // full
	module string // path of its module
	layer  int
	tensor *modelgraph.Tensor // nil for an extra
	buffer bool
	shared bool // another name of a tie group fills it
	pieces []piece
}

type piece struct {
	slot
	stored *safetensors.Tensor
}

// assign fills the graph's tensors from the checkpoint and returns the graph with stored types.
func assign(graph *modelgraph.Graph, cfg *config, ck *safetensors.Checkpoint) (*modelgraph.Graph, *assignment, error) {
	assigned := &assignment{
		graph: graph, names: loadingOf(graph, cfg), ck: ck, config: cfg,
		extras: make(map[string]*filling), quantised: make(map[string]bool),
		configured: cfg.has("quantization_config") || cfg.has("compression_config"),
	}
	if unread := assigned.names.unread; len(unread) > 0 {
		return nil, nil, fmt.Errorf("%s: Transformers makes %q of stored names by a rule that is not known here: describe the model in a model.json", ck.Dir, unread[0])
	}
	assigned.index()
	for i := range ck.Tensors {
		assigned.place(&ck.Tensors[i])
	}
	if err := assigned.fill(); err != nil {
		return nil, nil, err
	}
	assigned.share()
	if err := assigned.findMissing(); err != nil {
		return nil, nil, err
	}
	weights := graph.ParamCount()
	assigned.attach()
	out, err := assigned.rebuild()
	if err == nil {
		assigned.nameMethod(out, weights)
	}
	return out, assigned, err
}

// index lists the module's state dict: parameters, tied ones too, and the buffers that are saved.
func (assigned *assignment) index() {
	assigned.state = make(map[string]*filling)
	assigned.modules = make(map[string]int)
	for i := range assigned.graph.Layers {
		layer := &assigned.graph.Layers[i]
		for j := range layer.Params {
			assigned.register(i, &layer.Params[j], false)
		}
		for j := range layer.Buffers {
			if layer.Buffers[j].Persistent {
				assigned.register(i, &layer.Buffers[j], true)
			}
		}
	}
	assigned.ties = assigned.graph.Ties
}

func (assigned *assignment) register(layer int, t *modelgraph.Tensor, buffer bool) {
	l := &assigned.graph.Layers[layer]
	fill := &filling{name: modelgraph.FullName(l.Name, t.Name), layer: layer, tensor: t, buffer: buffer}
	fill.module = paths.Parent(fill.name)
	assigned.state[fill.name] = fill
	assigned.order = append(assigned.order, fill)
	if t.Name != "" { // no bare parameter
		assigned.modules[fill.module], assigned.modules[l.Name] = layer, layer
	}
}

// place finds the module tensors that a checkpoint tensor fills.
func (assigned *assignment) place(t *safetensors.Tensor) {
	place, ok := assigned.names.module(t.Name, func(name string) bool { return assigned.state[name] != nil })
	switch {
	case ok:
		for _, name := range place.targets() {
			if fill := assigned.state[name]; fill != nil {
				fill.pieces = append(fill.pieces, piece{place, t})
			}
		}
	case assigned.names.ignored(place.name):
		assigned.ignored.add(t.Name, t.Bytes())
	case !assigned.placeExtra(place, t):
		assigned.unexpected.add(t.Name, t.Bytes())
	}
}

// rebuild makes the graph again, since its sizes and ties have changed.
func (assigned *assignment) rebuild() (*modelgraph.Graph, error) {
	graph, err := relaid(assigned.graph, assigned.graph.Layers, assigned.ties)
	if err != nil {
		return nil, err
	}
	if graph.DType == noType {
		graph.DType = mostlyFloat(graph)
	}
	graph.Warnings = slices.Concat(assigned.graph.Warnings, assigned.ck.Warnings, assigned.warnings, assigned.leftOver())
	return graph, nil
}

package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// assignment joins the tensors of a graph with those of a checkpoint.
type assignment struct {
	g      *modelgraph.Graph
	ties   [][]string
	names  *loading
	ck     *safetensors.Checkpoint
	config *config

	state   map[string]*filling // state dict of the module
	order   []*filling          // the same, in module order
	modules map[string]int      // module path to layer
	// extras are stored tensors that the module gets beside or in place of
	// its own (quantised storage), by module name.
	extras     map[string]*filling
	extraOrder []*filling
	quantised  map[string]bool // module paths that hold extras
	configured bool            // the config has quantization_config

	missing             tally
	unexpected, ignored tally
	warnings            []string
}

// filling is one tensor of a module and what fills it.
type filling struct {
	name   string // full
	module string // path of the module that holds it
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

// assign fills the graph's tensors from the checkpoint and returns the graph
// as the checkpoint has it.
func assign(g *modelgraph.Graph, c *config, ck *safetensors.Checkpoint) (*modelgraph.Graph, *assignment, error) {
	a := &assignment{
		g: g, names: loadingOf(g, c), ck: ck, config: c,
		extras: make(map[string]*filling), quantised: make(map[string]bool),
		configured: c.has("quantization_config") || c.has("compression_config"),
	}
	a.index()
	for i := range ck.Tensors {
		a.place(&ck.Tensors[i])
	}
	if err := a.fill(); err != nil {
		return nil, nil, err
	}
	a.share()
	if err := a.findMissing(); err != nil {
		return nil, nil, err
	}
	weights := g.ParamCount()
	a.attach()
	out, err := a.rebuild()
	if err == nil {
		a.nameMethod(out, weights)
	}
	return out, a, err
}

// index lists the module's state dict: parameters, tied ones too, and the
// buffers that are saved.
func (a *assignment) index() {
	a.state = make(map[string]*filling)
	a.modules = make(map[string]int)
	for i := range a.g.Layers {
		l := &a.g.Layers[i]
		for j := range l.Params {
			a.register(i, &l.Params[j], false)
		}
		for j := range l.Buffers {
			if persistent(l.Buffers[j].Name) {
				a.register(i, &l.Buffers[j], true)
			}
		}
	}
	for _, t := range a.g.Ties {
		a.ties = append(a.ties, t.Tensors)
	}
}

func (a *assignment) register(layer int, t *modelgraph.Tensor, buffer bool) {
	l := &a.g.Layers[layer]
	f := &filling{name: modelgraph.FullName(l.Name, t.Name), layer: layer, tensor: t, buffer: buffer}
	f.module = parent(f.name)
	a.state[f.name] = f
	a.order = append(a.order, f)
	if t.Name != "" { // no bare parameter
		a.modules[f.module], a.modules[l.Name] = layer, layer
	}
}

// persistent reports whether a checkpoint holds the buffer. Of the known
// families only DeepSeek-V3 has one that it does.
func persistent(name string) bool { return strings.HasSuffix(name, "e_score_correction_bias") }

// parent is the path of the module that holds a tensor.
// place finds what a checkpoint tensor is for.
func (a *assignment) place(t *safetensors.Tensor) {
	s, ok := a.names.module(t.Name, func(n string) bool { return a.state[n] != nil })
	switch {
	case ok:
		f := a.state[s.name]
		f.pieces = append(f.pieces, piece{s, t})
	case a.names.ignored(s.name):
		a.ignored.add(t.Name, t.Bytes())
	case !a.placeExtra(s, t):
		a.unexpected.add(t.Name, t.Bytes())
	}
}

// rebuild makes the graph anew: its sizes and ties have changed.
func (a *assignment) rebuild() (*modelgraph.Graph, error) {
	for i := range a.g.Layers {
		for j := range a.g.Layers[i].Params {
			a.g.Layers[i].Params[j].Owner = ""
		}
	}
	g, err := modelgraph.New(a.g.Name, a.g.Layers, a.ties)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.ck.Dir, err)
	}
	g.Source, g.Family, g.Class, g.MaxSeq = a.g.Source, a.g.Family, a.g.Class, a.g.MaxSeq
	g.DType = a.g.DType
	if g.DType == noType {
		g.DType = mostlyFloat(g)
	}
	g.Warnings = slices.Concat(a.g.Warnings, a.ck.Warnings, a.warnings, a.leftOver())
	return g, nil
}

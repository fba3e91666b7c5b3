package diffusers

import (
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// tree collects layers in the order of diffusers' modules.
type tree struct {
	layers []modelgraph.Layer
}

// module is a place in the tree.
type module struct {
	tree *tree
	path string
	unit string // the wrap unit that it belongs to
}

// in returns the module of that name inside.
func (mod module) in(name string) module {
	mod.path = modelgraph.FullName(mod.path, name)
	return mod
}

// at returns a member of a list of modules.
func (mod module) at(index int) module { return mod.in(strconv.Itoa(index)) }

// block returns a member that is a wrap unit: one of the classes that the component names in
// _no_split_modules.
func (mod module) block(index int) module {
	mod = mod.at(index)
	if mod.unit == "" {
		mod.unit = mod.path
	}
	return mod
}

// add appends a layer.
func (mod module) add(name string, op modelgraph.Op, params ...[]modelgraph.Tensor) *modelgraph.Layer {
	var all []modelgraph.Tensor
	for _, tensors := range params {
		all = append(all, tensors...)
	}
	layer := modelgraph.Layer{Name: modelgraph.FullName(mod.path, name), Op: op, Params: all, Unit: mod.unit}
	if len(mod.tree.layers) == 0 {
		layer.Inputs = []string{}
	}
	mod.tree.layers = append(mod.tree.layers, layer)
	return &mod.tree.layers[len(mod.tree.layers)-1]
}

// linear is nn.Linear.
func (mod module) linear(name string, in, out int64, bias bool) {
	mod.add(name, modelgraph.Linear{In: in, Out: out}, matrix("", bias, out, in))
}

// norm is a normalization with a weight and, if bias is true, a bias.
func (mod module) norm(name string, dim int64, style modelgraph.NormStyle, bias bool) {
	mod.add(name, modelgraph.Norm{Dim: dim, Style: style}, matrix("", bias, dim))
}

// gamma is an RMS norm over channels, whose weight is shaped to be broadcast
// (autoencoder_kl_wan.py: WanRMS_norm).
func (mod module) gamma(name string, dim int64) {
	mod.add(name, modelgraph.Norm{Dim: dim, Style: modelgraph.RMSNorm}, []modelgraph.Tensor{{Name: "gamma", Shape: []int64{dim, 1, 1, 1}}})
}

// conv is a convolution with a kernel of those sides, and a bias.
func (mod module) conv(name string, in, out int64, kernel ...int64) {
	mod.convBias(name, in, out, true, kernel...)
}

func (mod module) convBias(name string, in, out int64, bias bool, kernel ...int64) {
	product := int64(1)
	for _, side := range kernel {
		product *= side
	}
	mod.add(name, modelgraph.Conv{In: in, Out: out, Kernel: product}, matrix("", bias, append([]int64{out, in}, kernel...)...))
}

// parameter is a bare parameter.
func (mod module) parameter(name string, shape ...int64) {
	mod.add(name, modelgraph.Parameter{}, []modelgraph.Tensor{{Shape: shape}})
}

// feedForward is diffusers' FeedForward (attention.py), which doubles the first
// projection if it is gated (GEGLU).
func (mod module) feedForward(name string, dim, hidden, out int64, activation string) {
	gated := activation == "geglu"
	first := hidden
	if gated {
		first = 2 * hidden
	}
	var op modelgraph.Op = modelgraph.MLP{Dim: dim, Hidden: hidden, Gated: gated, Fused: gated, Activation: activation}
	if out != dim {
		op = modelgraph.Opaque{}
	}
	mod.add(name, op, matrix("net.0.proj", true, first, dim), matrix("net.2", true, out, hidden))
}

// matrix returns a weight, and a bias with as many elements as outputs.
func matrix(name string, bias bool, shape ...int64) []modelgraph.Tensor {
	tensors := []modelgraph.Tensor{{Name: modelgraph.FullName(name, "weight"), Shape: shape}}
	if bias {
		tensors = append(tensors, modelgraph.Tensor{Name: modelgraph.FullName(name, "bias"), Shape: shape[:1]})
	}
	return tensors
}

// vectors are weights of norms.
func vectors(dim int64, names ...string) []modelgraph.Tensor {
	var tensors []modelgraph.Tensor
	for _, name := range names {
		tensors = append(tensors, modelgraph.Tensor{Name: name + ".weight", Shape: []int64{dim}})
	}
	return tensors
}

// matrices are projections of one size.
func matrices(in, out int64, bias bool, names ...string) []modelgraph.Tensor {
	var tensors []modelgraph.Tensor
	for _, name := range names {
		tensors = append(tensors, matrix(name, bias, out, in)...)
	}
	return tensors
}

// untyped is the type of a tensor before the component's type is known.
var untyped modelgraph.DType

// graph finishes the tree.
func (collected *tree) graph(name string) (*modelgraph.Graph, error) {
	for i := range collected.layers {
		layer := &collected.layers[i]
		for _, tensors := range [][]modelgraph.Tensor{layer.Params, layer.Buffers} {
			for j := range tensors {
				if tensors[j].DType == untyped {
					tensors[j].DType = modelgraph.BF16
				}
			}
		}
	}
	graph, err := modelgraph.New(name, collected.layers, nil)
	if err == nil {
		graph.DType = modelgraph.BF16
	}
	return graph, err
}

// Package modelgraph describes a model. It has layers with their operation, dimensions and tensors,
// and each tensor's place in a checkpoint. It says which layers must stay together, and which
// parameters are shared.
//
// A [Builder] makes a [Graph] from operations alone, and [New] from layers in the framework's
// module order. [Read] makes it from a model.json, and readers in sub-packages from other files. It
// is checked once and not changed afterwards. The same description of a layer determines its cost,
// its execution and the names in an emitted device map.
//
// Names follow the framework: a layer's name is its module path ("model.layers.0.self_attn"), and a
// tensor's name is relative to it ("q_proj.weight"). The joined name is the parameter's name.
package modelgraph

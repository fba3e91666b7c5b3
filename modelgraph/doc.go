// Package modelgraph describes a model: layers with their operation and dimensions, their tensors,
// which layers must stay together, which parameters are shared, and the place of each tensor in a
// checkpoint.
//
// A [Graph] is made by a [Builder] from operations alone, by [New] from layers in the framework's
// module order, by [Read] from a model.json, or by a reader in a sub-package. It is checked once
// and not changed afterwards. The same description of a layer determines its cost, its execution
// and the names in an emitted device map.
//
// Names follow the framework: a layer's name is its module path ("model.layers.0.self_attn"), and a
// tensor's name is relative to it ("q_proj.weight"). The joined name is the parameter's name.
package modelgraph

// Package modelgraph says what a model is: layers with their operation and
// dimensions, the tensors they hold, which layers must stay together, which
// parameters are shared, and where each tensor lies in a checkpoint.
//
// A [Graph] is made by a [Builder] from operations alone, by [New] from layers
// in the framework's module order, by [Read] from a model.json, or by one of
// the readers in the sub-packages. It is checked once and not changed
// afterwards. The same description of a layer
// drives its cost, its execution and the names in an emitted device map.
//
// Names follow the framework: a layer's name is its module path
// ("model.layers.0.self_attn"), a tensor's name is relative to it
// ("q_proj.weight"), so that the joined name is the parameter's name.
package modelgraph

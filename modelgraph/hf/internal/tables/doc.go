// Package tables evaluates the tables of releases of Transformers, and that of diffusers: the tensors, ties, units,
// operations and memory of a model class as functions of the fields of its config.
//
// A [Release] has a table. [Release.ClassOf] chooses the line of a class, [Release.Tree] evaluates it for a config,
// and [Tree.Graph] makes the graph. [Release.Names] gives the names that tensors in files can have. A field that the
// table does not explain is an [*Error] with the field's name.
//
// Package hf reads configs and folders, and chooses the release. This package takes the members of a config as JSON's
// own types, and never a file.
package tables

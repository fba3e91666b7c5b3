// Package recipe writes what devmap's own engine runs of a model: for every wrap unit the kernels of
// forward, backward and decode, with their tensors and costs. An arena's bytes ([costmodel.Regions]), a
// step's seconds and a program's code all follow from these kernels. Package
// executor/internal/recipetest computes each kernel in float64.
//
// The hidden stream is a chain. A unit reads "input", rows × columns, and writes "output"; backward
// reads "output.gradient" and writes "input.gradient". Kernels do not know how the model is split. In
// inference output may share input's buffer, and in backward input.gradient output.gradient's. So no
// kernel reads the former after the latter is written. A chunk's border needs a copy in addition.
package recipe

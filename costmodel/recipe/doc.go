// Package recipe is what devmap's own engine runs of a model: of every wrap unit the kernels of
// forward, backward and decode, each with the tensors that it reads and writes, and what they cost.
// It is the only place where that is written: the bytes of an arena ([costmodel.Regions]), the
// seconds of a step and the code of a program are added up from the same kernels. Package
// executor/internal/recipetest computes each kernel in float64.
//
// The hidden stream is a chain. A unit takes it as "input", rows × columns, and passes it as
// "output"; on the way back "output.gradient" comes in and "input.gradient" goes out. Kernels do
// not know how the model is cut: in inference output may be the buffer of input, and going back
// input.gradient that of output.gradient, so that none of the former is read once the latter is
// written. A chunk's border needs a copy in addition.
package recipe

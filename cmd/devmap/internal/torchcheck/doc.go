// Package torchcheck writes a program in Python that runs what a plan is for on
// PyTorch, and prints what every GPU held beside what was predicted.
//
// It is one file, put together of those in python that the plan's strategy needs,
// with the plan's figures and the model's config in it: it needs what the engine
// needs, and no checkpoint.
package torchcheck

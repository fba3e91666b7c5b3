// Package strategy costs every way to spread a model over the same GPUs, side by side: device map,
// pipeline, DDP, ZeRO, FSDP and HSDP, each under each of its runtimes. It orders them, picks the
// fastest that fits, and finds the smallest changes that make a [planner.Problem] fit where none
// does, of a diffusion pipeline too. Changes are data: settings of fields, which whoever asks puts
// into words.
package strategy

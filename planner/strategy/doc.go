// Package strategy compares every way to spread a model over the same GPUs: device map, pipeline,
// DDP, ZeRO, FSDP and HSDP, under each runtime. It sorts them and picks the fastest that fits. If
// none fits, it finds the smallest changes that make a [planner.Problem] fit, also for a diffusion
// pipeline. Changes are settings of fields; the caller puts them into words.
package strategy

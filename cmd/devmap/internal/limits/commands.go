package main

import "strings"

// command is the arguments of a devmap command, without a limit.
type command []string

func (args command) String() string { return strings.Join(args, " ") }

// limited reports a command that has --time-limit.
func (args command) limited() bool { return args[0] == "plan" || args[0] == "estimate" }

// commands are the rows of the matrix: the objectives by the strategies and
// schedules by the models by the counts of GPUs.
func commands() []command {
	var all []command
	for _, model := range []string{"chain2k.json", "chain10k.json", "fan5k.json", "branches5k.json"} {
		for _, gpus := range []string{"16", "512"} {
			for _, form := range forms() {
				all = append(all, append(command{"plan", model, "--gpus", gpus, "--json"}, form...))
			}
			all = append(all, command{"estimate", model, "--gpus", gpus, "--mode", "train", "--batch", "32"})
		}
	}
	for _, model := range []string{"posed5k.json", "posed100w.json"} {
		all = append(all, command{"plan", model, "--json"})
	}
	return all
}

// forms are the flags of the matrix, objective by objective.
func forms() []command {
	pipeline := command{"--strategy", "pipeline", "--batch", "32", "--micro-batches", "32"}
	strategies := []command{
		{},
		{"--mode", "train", "--batch", "32"},
		{"--contiguous=false", "--mode", "train", "--batch", "32"},
		pipeline,
		append(pipeline[:len(pipeline):len(pipeline)], "--mode", "train"),
		append(pipeline[:len(pipeline):len(pipeline)], "--mode", "train", "--schedule", "gpipe"),
		append(pipeline[:len(pipeline):len(pipeline)], "--mode", "train", "--schedule", "interleaved"),
		append(pipeline[:len(pipeline):len(pipeline)], "--mode", "train", "--dp", "auto"),
		{"--strategy", "fsdp", "--mode", "train"},
		{"--strategy", "zero3", "--mode", "train"},
		{"--strategy", "ddp", "--mode", "train"},
		{"--strategy", "auto", "--mode", "train", "--batch", "32"},
	}
	var all []command
	for _, objective := range []string{"memory", "time", "front"} {
		for _, flags := range strategies {
			all = append(all, append(flags[:len(flags):len(flags)], "--objective", objective))
		}
	}
	return all
}

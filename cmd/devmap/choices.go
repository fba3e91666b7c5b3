package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner/emit"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// choice is a flag with named values: those that are built, and those that
// the contract has and this version has not.
type choice struct {
	flag         string
	built, later []string
}

var choices = []choice{
	{"mode", known("mode"), nil},
	{"strategy", append(known("strategy"), string(costmodel.Auto)), nil},
	{"runtime", known("runtime"), []string{"megatron", "jax", "vllm", "llamacpp", "devmap"}},
	{"schedule", known("schedule"), []string{"zb-h1", "zb-h2", "zb-v"}},
	{"loss", known("loss"), nil},
	{"attention", known("attention"), nil},
	{"precision", known("precision"), nil},
	{"optimizer", known("optimizer"), nil},
	{"recompute", known("recompute"), nil},
	{"objective", []string{"memory", "time", "front"}, nil},
	{"offload", []string{"none", "cpu", "disk"}, nil},
	{"sequence-parallel", []string{"off"}, []string{"on"}},
	{"lora-precision", known("lora_precision"), nil},
	{"quantize", append([]string{"off"}, known("quantize")...), nil},
	{"for", emit.Engines(), nil},
}

// known are the named values of a field.
func known(field string) []string {
	fields := costmodel.Fields()
	i := slices.IndexFunc(fields, func(f costmodel.Field) bool { return f.Name == field })
	return fields[i].Values
}

// check refuses a value that is not built, and one that is unknown.
func (c *choice) check(value string) error {
	switch {
	case slices.Contains(c.built, value):
		return nil
	case c.flag == "runtime" && estimate.Advice(costmodel.Runtime(value)) != "":
		return out.Usagef("%w; %s", notBuilt(c.flag, value, c.names()), estimate.Advice(costmodel.Runtime(value)))
	case slices.Contains(c.later, value):
		return notBuilt(c.flag, value, c.names())
	}
	near := ""
	if g := guess(c.flag, value, c.built); g != "" {
		near = ": did you mean " + g + "?"
	}
	return out.Usagef("--%s %q is unknown (known: %s)%s", c.flag, value, strings.Join(slices.Concat(c.built, c.later), ", "), near)
}

func (c *choice) names() string { return strings.Join(c.built, ", ") }

// checkChoices checks every flag with named values that the user gave.
func checkChoices(cmd *cobra.Command) error {
	for i := range choices {
		if f := cmd.Flags().Lookup(choices[i].flag); f != nil && f.Changed {
			if err := choices[i].check(f.Value.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete lets shells complete the named values of a command's flags.
func complete(cmd *cobra.Command) *cobra.Command {
	for i := range choices {
		if cmd.Flags().Lookup(choices[i].flag) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(choices[i].flag, cobra.FixedCompletions(choices[i].built, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag is there, and has no other completion
		}
	}
	if cmd.Flags().Lookup("gpu") != nil {
		if err := cmd.RegisterFlagCompletionFunc("gpu", cobra.FixedCompletions(catalogue.Names(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // as above
		}
	}
	return cmd
}

// values are the built values of a flag, as its help lists them.
func values(flag string) string {
	i := slices.IndexFunc(choices, func(c choice) bool { return c.flag == flag })
	return choices[i].names()
}

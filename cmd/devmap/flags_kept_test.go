package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/planner/strategy"
)

// another is a value that each flag of a workload has by no default.
var another = map[string]string{
	"mode": "train", "batch": "3", "micro-batches": "3", "seq": "7", "target-seq": "5", "new-tokens": "2",
	"images": "1", "image-size": "448", "precision": "32-true", "optimizer": "sgd", "recompute": "full",
	"strategy": "hsdp", "runtime": "lightning", "schedule": "gpipe", "virtual-stages": "3", "shard-degree": "2",
	"lora-rank": "4", "lora-targets": "q_proj,v_proj", "lora-precision": "bf16", "quantize": "nf4",
	"loss": "fused", "attention": "eager", "loss-only": "true", "gradient-as-bucket-view": "true", "ema": "true",
}

// TestFlagsKept: every flag that asks for a workload is among those that
// reproduce a row, and reads back as the same workload; every other of
// estimate's is printed as it was given.
func TestFlagsKept(t *testing.T) {
	var s shared
	workload := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.workload(workload)
	workload.VisitAll(func(f *pflag.Flag) {
		var given, again shared
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		given.workload(set)
		if err := set.Set(f.Name, another[f.Name]); err != nil {
			t.Fatalf("--%s has no other value in this test: %v", f.Name, err)
		}
		w, err := given.parse()
		if err != nil {
			t.Fatal(err)
		}
		flags := strategy.Flags(&w)
		if !slices.ContainsFunc(flags, func(word string) bool { return word == "--"+f.Name || strings.HasPrefix(word, "--"+f.Name+"=") }) {
			t.Errorf("--%s %s is lost: %q", f.Name, another[f.Name], flags)
		}
		set = pflag.NewFlagSet("", pflag.ContinueOnError)
		again.workload(set)
		if err := set.Parse(flags); err != nil || set.NArg() > 0 {
			t.Errorf("%q do not parse: %v", flags, err)
		}
		if got, want := set.Lookup(f.Name).Value.String(), wanted(t, f.Name); got != want {
			t.Errorf("--%s %s reads back as %s", f.Name, want, got)
		}
	})
	var c estimateCommand
	others := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.devices(others)
	c.placement(others)
	others.VisitAll(func(f *pflag.Flag) {
		if f.Name == "contiguous" || f.Name == "offload" {
			return // of one row alone (anywhereFlag), and refused
		}
		if err := others.Set(f.Name, "1"); err != nil {
			t.Fatal(err)
		}
		if flags := c.deviceFlags(others); !slices.Contains(flags, "--"+f.Name) {
			t.Errorf("--%s is lost: %q", f.Name, flags)
		}
	})
}

// wanted is a flag's other value as pflag prints it.
func wanted(t *testing.T, name string) string {
	t.Helper()
	var s shared
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.workload(set)
	if err := set.Set(name, another[name]); err != nil {
		t.Fatal(err)
	}
	return set.Lookup(name).Value.String()
}

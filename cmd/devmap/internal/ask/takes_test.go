package ask_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestTakes: a change is not printed if its flags ask for anything else than the tried problem.
func TestTakes(t *testing.T) {
	cmd := &cobra.Command{Use: "plan MODEL"}
	r := ask.New(cmd)
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags(strings.Fields("--gpus 2 --gpu rtx-4090 --mode train --batch 4 --micro-batches 4 --strategy ddp --pin lm_head=1")); err != nil {
		t.Fatal(err)
	}
	p, err := r.Problem("llama-3.2-1b")
	if err != nil {
		t.Fatal(err)
	}
	p.Workload.Strategy = costmodel.DeviceMap
	p.Pins = nil
	change := strategy.Next(t.Context(), p.Problem, p.Options, 9)[0]
	change.Without = append(change.Without, "pin")
	if _, ok := p.Say(change); !ok || ask.ChangeText(&change) != "--gpus 1 --strategy device-map (without --pin)" {
		t.Fatalf("%q is not taken", ask.ChangeText(&change))
	}
	for what, tamper := range map[string]func(*strategy.Change){
		"a flag is missing":       func(c *strategy.Change) { c.Set = c.Set[:1] },
		"another value":           func(c *strategy.Change) { c.Set = append(slices.Clone(c.Set), costmodel.Set("seq", 64)) },
		"other GPUs":              func(c *strategy.Change) { c.Set = c.Set[1:] },
		"a constraint is kept":    func(c *strategy.Change) { c.Without = nil },
		"any assignment":          func(c *strategy.Change) { c.Set = append(slices.Clone(c.Set), costmodel.Set("contiguous", false)) },
		"it contradicts the rest": func(c *strategy.Change) { c.Set = append(slices.Clone(c.Set), costmodel.Set("offload", "cpu")) },
		"no such flag":            func(c *strategy.Change) { c.Set = []costmodel.Setting{costmodel.Set("gpu_count", 1)} },
	} {
		wrong := change
		tamper(&wrong)
		if _, ok := p.Say(wrong); ok {
			t.Errorf("%s: %q without %q is taken", what, wrong.Set, wrong.Without)
		}
	}
}

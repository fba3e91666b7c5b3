package strategy_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestNamedDevices: GPUs that have a name alone are the catalogue's, in rows and in every change.
func TestNamedDevices(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "rtx-4090", 2, training(1))
	p.Workload.Strategy = costmodel.DeviceMap
	named := p
	named.Topology = &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{{Name: "rtx-4090"}}, 2)}
	want := whats(strategy.Smallest(t.Context(), p, strategy.Options{}))
	if got := whats(strategy.Smallest(t.Context(), named, strategy.Options{})); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%q, by their figures %q", got, want)
	}
	want = whats(strategy.Next(t.Context(), p, strategy.Options{}, 9))
	if got := whats(strategy.Next(t.Context(), named, strategy.Options{}, 9)); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("next: %q, by their figures %q", got, want)
	}
	if rows := rowsOf(t, named); rows[0].Refused != nil || rows[0].Fits {
		t.Errorf("%+v", rows[0])
	}
	named.Topology.Devices[1].Name = "rtx-4091"
	if _, err := strategy.Rows(t.Context(), named, strategy.Options{}); err == nil {
		t.Error("a GPU that nobody knows has rows")
	}
}

// TestFixed: no change sets a field that is fixed.
func TestFixed(t *testing.T) {
	several := problem(t, "qwen2.5-0.5b", "h100-80gb", 2, training(4))
	several.Workload.Strategy = costmodel.DeviceMap
	small := problem(t, "llama-3.1-8b", "rtx-4090", 1, costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.DeviceMap})
	small.Topology.Devices[0].ReservedBytes += 10 << 30
	for field, p := range map[string]planner.Problem{"gpus": several, "gpu": several, "contiguous": several, "offload": small} {
		sets := func(options strategy.Options) bool {
			var changes []strategy.Change
			if field == "offload" {
				changes = strategy.Smallest(t.Context(), p, options)
			} else {
				changes = strategy.Next(t.Context(), p, options, 9)
			}
			return slices.ContainsFunc(changes, func(change strategy.Change) bool {
				return slices.ContainsFunc(change.Set, func(setting costmodel.Setting) bool { return setting.Field == field })
			})
		}
		if !sets(strategy.Options{}) {
			t.Errorf("no change sets %s: nothing is tested", field)
		}
		if sets(strategy.Options{Fixed: []string{field}}) {
			t.Errorf("a change sets %s", field)
		}
	}
}

package steptime_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// onCPU is the place of a unit in the host's memory.
const onCPU = -1

// generating is two units in generation with a prompt of 4 tokens: outputs of 8 bytes for it, 2 for
// a token.
func generating(newTokens, microBatches int64) *costmodel.Table {
	return &costmodel.Table{
		Workload: costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.DeviceMap, Seq: 4, NewTokens: newTokens, MicroBatches: microBatches, Precision: costmodel.BF16True},
		Units: []costmodel.Unit{
			{Name: "a", Work: costmodel.Work{Forward: costmodel.Pass{Products: 10}, Token: costmodel.Pass{Products: 1}, Output: 8}},
			{Name: "b", Work: costmodel.Work{Forward: costmodel.Pass{Products: 20}, Token: costmodel.Pass{Products: 2}, Output: 8}},
		},
		OutputBytes: 100,
	}
}

func slowPair() *costmodel.Topology {
	return &costmodel.Topology{Devices: []costmodel.Device{{FLOPS: 1, Rates: costmodel.Rates{LinkBytesPerSecond: 1}}, {FLOPS: 1, Rates: costmodel.Rates{LinkBytesPerSecond: 1}}}}
}

// TestTokenCrosses: a token's part of an output crosses with every token, in its part of the time.
func TestTokenCrosses(t *testing.T) {
	for _, c := range []struct {
		tokens int64
		place  []int
		want   float64
	}{
		{0, []int{0, 0}, 10 + 20},
		{0, []int{0, 1}, 10 + 8 + 20},
		{3, []int{0, 0}, 10 + 20 + 3*(1+2)},
		{3, []int{0, 1}, 10 + 8 + 20 + 3*(1+8./4+2)},
	} {
		if got, err := steptime.Step(generating(c.tokens, 1), slowPair(), c.place); err != nil || got != c.want {
			t.Errorf("%d tokens on %v: %v s (%v), want %v", c.tokens, c.place, got, err, c.want)
		}
	}
}

// TestGenerationSends: each micro-batch sends its prompt's output and then
// every token's part of it, and the model's outputs go back to the input.
func TestGenerationSends(t *testing.T) {
	for _, c := range []struct {
		tokens, micro int64
		place         []int
		want          int64
	}{
		{0, 1, []int{0, 0}, 0},
		{0, 1, []int{1, 0}, 8}, // the outputs are where the input is
		{3, 1, []int{1, 0}, 8 + 3*2},
		{3, 5, []int{1, 0}, 5 * (8 + 3*2)},
		{3, 5, []int{0, 1}, 5 * 100}, // the busiest sends the outputs back
	} {
		if got := steptime.Communication(generating(c.tokens, c.micro), slowPair(), c.place); got != c.want {
			t.Errorf("%d tokens of %d micro-batches on %v: %d B, want %d", c.tokens, c.micro, c.place, got, c.want)
		}
	}
}

// TestGenerationGathers: ZeRO-3 gathers all weights for the prompt and again
// for every token; of n ranks each sends (n−1)/n of them.
func TestGenerationGathers(t *testing.T) {
	table := generating(3, 1)
	table.Workload.Strategy, table.Workload.Runtime, table.Workload.ShardDegree = costmodel.Zero3, value.DeepSpeed, 2
	table.Units[0].Work.Weights, table.Units[1].Work.Weights = 30, 50
	if got, want := steptime.Communication(table, slowPair(), nil), int64(4*80*2/2); got != want { // in bf16
		t.Errorf("%d B, want %d", got, want)
	}
}

// TestStreamedFirst: offloaded units run on the first device that holds any unit.
func TestStreamedFirst(t *testing.T) {
	table := generating(0, 1)
	table.Units = append(table.Units, table.Units[1])
	table.Units[0].Params = 6
	topo := slowPair()
	topo.Devices[0].CPUBytesPerSecond, topo.Devices[1].CPUBytesPerSecond = 2, 1
	// Copied in 3 s to device 0, which runs it in 10; its output crosses in 8,
	// 20 s on device 1, back in 8, and 20.
	if got, err := steptime.Step(table, topo, []int{onCPU, 1, 0}); err != nil || got != 3+10+8+20+8+20 {
		t.Errorf("%v s (%v), want 69", got, err)
	}
	// The last unit is on the other device: the first is still device 0.
	if got, err := steptime.Step(table, topo, []int{onCPU, 0, 1}); err != nil || got != 3+10+20+8+20 {
		t.Errorf("%v s (%v), want 61", got, err)
	}
}

// TestStreamedTokens: what left is copied to its device for the prompt, and
// again for every token. The host waits for the copy, as the device does.
func TestStreamedTokens(t *testing.T) {
	table := generating(5, 1)
	table.Units[0].Params = 6
	topo := slowPair()
	topo.Devices[0].CPUBytesPerSecond = 2
	if got, err := steptime.Step(table, topo, []int{onCPU, 0}); err != nil || got != 3+10+20+5*(3+1+2) {
		t.Errorf("%v s (%v), want %v", got, err, 3+10+20+5*(3+1+2))
	}
	topo.Devices[0].IssueSeconds = 1 // a token's kernels take the host longer than the device
	table.Units[0].Work.Token.Kernels, table.Units[1].Work.Token.Kernels = 10, 10
	if got, err := steptime.Step(table, topo, []int{onCPU, 0}); err != nil || got != 3+10+20+5*(3+10+10) {
		t.Errorf("%v s (%v), want %v", got, err, 3+10+20+5*(3+10+10))
	}
}

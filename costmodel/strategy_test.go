package costmodel_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestStrategies checks the rows of the table against each other: each strategy
// is run in one of three ways, and by engines that are built.
func TestStrategies(t *testing.T) {
	for _, strategy := range costmodel.Strategies() {
		traits := strategy.Traits()
		count := 0
		for _, is := range []bool{traits.Sequential, traits.Staged, traits.Replicated} {
			if is {
				count++
			}
		}
		if count != 1 || traits.Open {
			t.Errorf("%s runs in %d ways: %+v", strategy, count, traits)
		}
		if traits.Sharded != (traits.ZeroStage == 3) || traits.ByBlock && !traits.Sharded || (traits.Groups > 0) != (traits.ZeroStage > 0) {
			t.Errorf("%s: what it cuts contradicts itself: %+v", strategy, traits)
		}
		if len(traits.Runtimes) == 0 {
			t.Errorf("no engine runs %s", strategy)
		}
		for _, runtime := range traits.Runtimes {
			if !slices.Contains([]string{"accelerate", "torch", "lightning", "deepspeed", "jax", "torchtitan", "megatron", "devmap"}, runtime) {
				t.Errorf("%s is run by %s, which is not built", strategy, runtime)
			}
		}
	}
	for strategy, open := range map[costmodel.Strategy]bool{"": true, costmodel.Auto: true, "tensor": false} {
		if traits := strategy.Traits(); traits.Open != open || len(traits.Runtimes) > 0 {
			t.Errorf("%q: %+v", strategy, traits)
		}
	}
}

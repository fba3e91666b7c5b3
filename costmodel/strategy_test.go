package costmodel_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestStrategies holds the rows of the table to each other: each strategy is
// run in one of three ways, and by engines that are built.
func TestStrategies(t *testing.T) {
	for _, s := range costmodel.Strategies() {
		traits := s.Traits()
		ways := 0
		for _, is := range []bool{traits.Sequential, traits.Staged, traits.Replicated} {
			if is {
				ways++
			}
		}
		if ways != 1 || traits.Open {
			t.Errorf("%s runs in %d ways: %+v", s, ways, traits)
		}
		if traits.Sharded != (traits.ZeroStage == 3) || traits.ByBlock && !traits.Sharded || (traits.Groups > 0) != (traits.ZeroStage > 0) {
			t.Errorf("%s: what it cuts contradicts itself: %+v", s, traits)
		}
		if len(traits.Runtimes) == 0 {
			t.Errorf("no engine runs %s", s)
		}
		for _, r := range traits.Runtimes {
			if !slices.Contains([]costmodel.Runtime{costmodel.Accelerate, costmodel.Torch, costmodel.Lightning, costmodel.DeepSpeed}, r) {
				t.Errorf("%s is run by %s, which is not built", s, r)
			}
		}
	}
	for s, open := range map[costmodel.Strategy]bool{"": true, costmodel.Auto: true, "tensor": false} {
		if traits := s.Traits(); traits.Open != open || len(traits.Runtimes) > 0 {
			t.Errorf("%q: %+v", s, traits)
		}
	}
}

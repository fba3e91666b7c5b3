package show

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestChosenBlocks: a point of a front names the blocks that the request left open, also none.
func TestChosenBlocks(t *testing.T) {
	t.Parallel()
	asked := &costmodel.Workload{Recompute: "auto", OffloadActivations: "auto"}
	for _, test := range []struct{ recompute, offload, want string }{
		{"auto", "auto", ""},
		{"0-3", "auto", "\nrecompute 0-3"},
		{"none", "", "\nrecompute none\noffload-activations none"},
		{"auto", "1,4", "\noffload-activations 1,4"},
	} {
		chosen := &costmodel.Workload{Recompute: test.recompute, OffloadActivations: test.offload}
		if got := chosenBlocks(chosen, asked); got != test.want {
			t.Errorf("%s and %s: %q, want %q", test.recompute, test.offload, got, test.want)
		}
	}
}

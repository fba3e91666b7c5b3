package hf

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestYarnFactor: with two mscales, cosines and sines are multiplied by a ratio of their
// logarithms, and by 1 if nothing is stretched (get_mscale of _compute_yarn_parameters).
func TestYarnFactor(t *testing.T) {
	for stretch, want := range map[float64]float64{
		4: (0.1*math.Log(4) + 1) / (0.05*math.Log(4) + 1), 1: 0, 0.5: 0,
	} {
		rope := fields{"type": "yarn", "factor": stretch, "mscale": 1, "mscale_all_dim": 0.5}
		for _, op := range ops[modelgraph.Attention](t, small(t, "llama", fields{"rope_scaling": rope})) {
			if math.Abs(op.Rotation.AttentionFactor-want) > 1e-12 {
				t.Errorf("factor %v: an attention factor of %v, want %v", stretch, op.Rotation.AttentionFactor, want)
			}
		}
	}
}

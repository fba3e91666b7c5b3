package kernel_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestCache: prompts and tokens lie at their positions modulo the ring's.
func TestCache(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, positions := range []int64{1, 3, 8, 70} {
			dims := fmt.Sprintf("sequences=2 columns=24 positions=%d seq=8", positions)
			newTrial(t, random, "cache", dims).with("k", dtype, 16, 24, 1).with("v", dtype, 16, 24, 1).
				with("+keys", dtype, 2*positions, 24, 1).with("+values", dtype, 2*positions, 24, 1).run(0, 0)
			one := newTrial(t, random, "cache", fmt.Sprintf("sequences=2 columns=24 positions=%d past=8", positions))
			one.call.Past, one.judge.Past = 4, 4
			one.with("k", dtype, 2, 24, 1).with("v", dtype, 2, 24, 1).
				with("+keys", dtype, 2*positions, 24, 1).with("+values", dtype, 2*positions, 24, 1).run(0, 0)
		}
	}
}

// TestAttentionDecode: of rings that are not full, just full, and gone round;
// of one span of their positions and of several, the last without a key.
func TestAttentionDecode(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, ring := range []struct{ positions, span, past, window int64 }{
			{20, 512, 0, 0},
			{20, 512, 19, 0},
			{3, 512, 1, 3},
			{3, 512, 2, 3},
			{3, 512, 40, 3},
			{1, 512, 9, 1},
			{200, 64, 1, 0},
			{200, 64, 63, 0},
			{200, 64, 64, 0},
			{200, 64, 199, 0},
			{129, 64, 500, 129},
		} {
			dims := fmt.Sprintf("sequences=3 heads=6 kv=2 dim=8 past=%d causal=1 scale=0.4 positions=%d span=%d", ring.past, ring.positions, ring.span)
			if ring.window > 0 {
				dims += fmt.Sprintf(" window=%d cap=30", ring.window)
			}
			trial := newTrial(t, random, "attention_decode", dims).with("q", dtype, 3, 48, 1).
				with("keys", dtype, 3*ring.positions, 16, 1).with("values", dtype, 3*ring.positions, 16, 1)
			parts := (ring.positions + ring.span - 1) / ring.span
			if parts == 1 {
				trial.with(">y", dtype, 3, 48, 0).run(1e-6, 1e-2)
				continue
			}
			trial.with(">parts", modelgraph.F32, 3*parts, 6*10, 0)
			trial.run(1e-6, 1e-2)
			newTrial(t, random, "attention_join", fmt.Sprintf("rows=3 heads=6 dim=8 parts=%d", parts)).
				same("parts", trial, 3).with(">y", dtype, 3, 48, 0).run(1e-6, 1e-2)
		}
	}
}

package estimate_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

const llamaParams = 8030261248

func zeroTable(t *testing.T, w costmodel.Workload) (*modelgraph.Graph, *costmodel.Table) {
	t.Helper()
	g := fixtures.Must(load.Model("llama-3.1-8b", load.Options{BuiltIn: fixtures.Models()}))(t)
	w.Mode, w.World = costmodel.Train, 8
	w = fixtures.Must(estimate.Resolve(g, w))(t)
	table := fixtures.Must(estimate.Table(g, w))(t)
	return g, table
}

// states are a rank's bytes a parameter of the model.
type states struct{ weights, grads, optimizer, step float64 }

func statesOf(table *costmodel.Table) states {
	var s states
	for i := range table.Units {
		u := &table.Units[i]
		s.weights += float64(u.Params) / llamaParams
		s.optimizer += float64(u.OptimizerState) / llamaParams
		s.grads += float64(u.ResidentGrads) / llamaParams
		s.step += float64(u.StepTransient) / llamaParams
		for j := range u.Layers {
			s.grads += float64(u.Layers[j].Grads) / llamaParams
		}
	}
	return s
}

func (s states) near(o states) bool {
	const rounding = 1e-4 // each tensor's part is rounded up
	return math.Abs(s.weights-o.weights) < rounding && math.Abs(s.grads-o.grads) < rounding &&
		math.Abs(s.optimizer-o.optimizer) < rounding && math.Abs(s.step-o.step) < rounding
}

// inPart are the elements of parameters that begin in the first of eight shards of Llama 3.1 8B.
// norm is the bytes of the largest's gradient in fp64. Both are per parameter.
const (
	inPart = (128256.*4096 + 2*218112000 + 2*4096*4096 + 2*1024*4096 + 14336*4096) / llamaParams
	norm   = 8 * 128256. * 4096 / llamaParams
)

// TestZeroStates: bytes a parameter on one of 8 GPUs, with Adam; as in the paper if mixed.
func TestZeroStates(t *testing.T) {
	for _, c := range []struct {
		strategy  costmodel.Strategy
		precision costmodel.Precision
		ema       bool
		want      states
	}{
		{costmodel.Zero1, costmodel.BF16Mixed, false, states{2, 2, 12. / 8, 0}},
		// ZeRO 2's gradients are in the bucket until they are reduced: its part
		// of them, whole parameters, is part of the step.
		{costmodel.Zero2, costmodel.BF16Mixed, false, states{2, 0, 12. / 8, 6./8 + 2*inPart}},
		{costmodel.Zero3, costmodel.BF16Mixed, false, states{2. / 8, 2. / 8, 12. / 8, 6. / 8}},
		{costmodel.Zero2, costmodel.FP16Mixed, false, states{2, 0, 12. / 8, 6./8 + 2*inPart}},
		{costmodel.Zero1, costmodel.BF16True, false, states{2, 2, 6. / 8, 0}},
		{costmodel.Zero2, costmodel.BF16True, false, states{2, 0, 6. / 8, norm + 2*inPart}},
		{costmodel.Zero3, costmodel.BF16True, false, states{2. / 8, 2. / 8, 6. / 8, 2. / 8}}, // the master is a copy
		{costmodel.Zero2, costmodel.FP32True, false, states{4, 0, 12. / 8, norm + 4*inPart}},
		{costmodel.Zero3, costmodel.FP32True, false, states{4. / 8, 4. / 8, 12. / 8, 4. / 8}},
		// Without --precision a bf16 model is trained as bf16.enabled does.
		{costmodel.Zero1, "", false, states{2, 2, 12. / 8, 0}},
		{costmodel.Zero3, "", false, states{2. / 8, 2. / 8, 12. / 8, 6. / 8}},
		// A moving average: of whole weights, but if they are cut too.
		{costmodel.Zero2, costmodel.BF16Mixed, true, states{2, 0, 12./8 + 2, 6./8 + 2*inPart}},
		{costmodel.Zero3, costmodel.BF16Mixed, true, states{2. / 8, 2. / 8, 14. / 8, 6. / 8}},
	} {
		_, table := zeroTable(t, costmodel.Workload{Strategy: c.strategy, Precision: c.precision, Optimizer: costmodel.AdamW, EMA: c.ema})
		got := statesOf(table)
		if !got.near(c.want) {
			t.Errorf("%s, %s, average %t: %+v, want %+v", c.strategy, c.precision, c.ema, got, c.want)
		}
		stage := int(c.strategy[4] - '0')
		if total := got.weights + got.grads + got.optimizer; c.precision == costmodel.BF16Mixed && !c.ema && stage != 2 &&
			math.Abs(total-zeroPaper(stage, 1, 8)) > 1e-4 {
			t.Errorf("%s: %g B a parameter, the paper says %g", c.strategy, total, zeroPaper(stage, 1, 8))
		}
	}
}

// TestZeroGathered: the head stays gathered from its forward to its backward. So do as many
// elements of the last blocks as stage3_max_live_parameters allows: two blocks and the first matrix
// of the third. The 65 norms are too small to shard, and the gradients' bucket stays throughout.
func TestZeroGathered(t *testing.T) {
	_, table := zeroTable(t, costmodel.Workload{Strategy: costmodel.Zero3, Precision: costmodel.BF16Mixed, Optimizer: costmodel.AdamW})
	const bucket, remainder = 1e9, 341504 // of 477 segments of 2 MiB
	if want := int64(bucket + remainder + 2*65*4096); table.Buckets != want {
		t.Errorf("%d bytes are there throughout, want %d", table.Buckets, want)
	}
	head := table.Units[len(table.Units)-1].Layers[0]
	const block = 2*4096*4096 + 2*1024*4096 + 3*14336*4096
	if want := int64(2 * (128256*4096 + 2*block + 14336*4096)); head.GatheredBackward != want {
		t.Errorf("%d bytes are gathered at the loss, want %d", head.GatheredBackward, want)
	}
	for _, part := range []string{"ZeRO-3 estimator says 18.78 GiB", "reduce_bucket_size (953.7 MiB, throughout)", "gathers 14.96 GiB in the host memory of rank 0"} {
		if !slices.ContainsFunc(table.Warnings, func(said costmodel.Message) bool { return strings.Contains(said.String(), part) }) {
			t.Errorf("no warning says %q: %q", part, table.Warnings)
		}
	}
}

// TestZeroTied: a tied gradient of ZeRO 2 waits whole for its last use, and then goes to the
// bucket; the sum is a third tensor.
func TestZeroTied(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", "tie_word_embeddings": true, `+tiny+`}`)
	w := fixtures.Must(estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Zero2, World: 4, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}))(t)
	tab := fixtures.Must(estimate.Table(g, w))(t)
	first, last := timeline.Of(&tab.Units[0]), timeline.Of(&tab.Units[len(tab.Units)-1])
	size := 2 * g.Layers[0].Params[0].Numel
	if first.Grads != -size || last.Grads != size || tab.Units[0].Layers[0].Backward < 2*size {
		t.Errorf("the embedding leaves %d, the head %d; the tied gradient has %d bytes", first.Grads, last.Grads, size)
	}
}

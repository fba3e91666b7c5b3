package steptime

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestSpansEnd: the last span of a step ends with it, under every strategy.
func TestSpansEnd(t *testing.T) {
	pass := func(products float64) costmodel.Pass { return costmodel.Pass{Products: products} }
	units := make([]costmodel.Unit, 4)
	for i := range units {
		units[i].Work = costmodel.Work{Forward: pass(1e12), Backward: pass(2e12), Token: pass(1e11), Weights: 1e6, Trained: 1e6, Update: 1e11, Tensors: 2, Block: i > 0}
	}
	device := costmodel.Device{FLOPS: 1e12, Rates: costmodel.Rates{BytesPerSecond: 1e12, StridedBytesPerSecond: 1e12}}
	topo := &costmodel.Topology{Devices: []costmodel.Device{device, device}}
	for _, strategy := range []costmodel.Strategy{costmodel.DeviceMap, costmodel.Pipeline, costmodel.DDP, costmodel.Zero1, costmodel.Zero2, costmodel.Zero3, costmodel.FSDP} {
		for _, mode := range []costmodel.Mode{costmodel.Train, costmodel.Infer} {
			table := &costmodel.Table{Units: units, Workload: costmodel.Workload{Mode: mode, Strategy: strategy, MicroBatches: 3, Precision: costmodel.BF16True, Schedule: "1f1b"}}
			if mode == costmodel.Infer {
				table.Workload.NewTokens = 5
			}
			var place []int
			if !strategy.Traits().Replicated {
				place = []int{0, 0, 1, 1}
			}
			step := fixtures.Must(Step(table, topo, place))(t)
			spans := fixtures.Must(Spans(table, topo, place))(t)
			var end float64
			for _, span := range spans {
				end = max(end, span.End)
			}
			if math.Abs(end-step) > 1e-9*step {
				t.Errorf("%s, %s: the spans end after %v s, the step after %v s", strategy, mode, end, step)
			}
		}
	}
}

// TestSpansTooMany: a pipeline of too many passes to list has a step and no spans.
func TestSpansTooMany(t *testing.T) {
	table := &costmodel.Table{
		Units:    []costmodel.Unit{{Work: costmodel.Work{Forward: costmodel.Pass{Products: 1e12}}}, {Work: costmodel.Work{Forward: costmodel.Pass{Products: 1e12}}}},
		Workload: costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Precision: costmodel.BF16True},
	}
	topo := &costmodel.Topology{Devices: []costmodel.Device{{FLOPS: 1e12}, {FLOPS: 1e12}}}
	for batches, known := range map[int64]bool{1 << 10: true, 1<<19 + 1: false, 1 << 40: false} {
		table.Workload.MicroBatches = batches
		if seconds, err := Step(table, topo, []int{0, 1}); err != nil || seconds != float64(batches+1) {
			t.Errorf("%d micro-batches: a step of %v s, %v", batches, seconds, err)
		}
		if spans, err := Spans(table, topo, []int{0, 1}); (err == nil) != known || known && len(spans) != int(2*batches) {
			t.Errorf("%d micro-batches: %d spans, %v", batches, len(spans), err)
		}
	}
}

// TestSpansRepeated: a repeated span has the number of its micro-batch, and the span of all that are left
// ends with the last.
func TestSpansRepeated(t *testing.T) {
	const period, times = 3, 1 << 20
	record := &recorder{}
	record.add(Span{Stream: streamCompute, What: doesForward, EndUnit: 1, Start: 0, End: 1})
	record.add(Span{Stream: streamCompute, What: doesBackward, EndUnit: 1, Start: 1, End: period})
	record.repeat(0, period, times)
	last := len(record.spans) - 1
	for i, span := range record.spans[:last] {
		if want := int64(i / 2); span.Batch != want || span.Start != float64(period*want+int64(i%2)) {
			t.Fatalf("span %d is %+v", i, span)
		}
	}
	rest, before := record.spans[last], record.spans[last-1]
	if rest.Batch != -1 || rest.Start != before.End || rest.End != period*(times+1) {
		t.Errorf("the rest is %+v, after %+v", rest, before)
	}
}

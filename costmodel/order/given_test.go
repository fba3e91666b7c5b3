package order_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// Every published order can be named as an order of its own, and is the same then.
func TestGivenOrders(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved, costmodel.ZBH1, costmodel.ZBV, costmodel.VHalf, costmodel.VMin} {
		for _, stages := range []int64{1, 2, 4} {
			for _, batches := range []int64{1, 4, 9, 40} {
				schedule := costmodel.Schedule{Kind: kind, Stages: stages, Chunks: 1, MicroBatches: batches, AnyMicroBatches: true}
				if kind.Chunked() {
					schedule.Chunks = 2
				}
				rows := make([][]order.Action, stages)
				for rank := range stages {
					rows[rank] = order.Of(schedule, rank)
				}
				own := schedule
				own.Kind = order.Given(kind.Vee(), rows)
				if err := own.Check(); err != nil {
					t.Fatalf("%s: %v", own.Kind, err)
				}
				if own.Kind.Vee() != kind.Vee() || own.Kind.Loops() != kind.Loops() || stages > 1 && own.Kind.Split() != kind.Split() { // the first rank of ZB-H1 runs whole backwards
					t.Errorf("%s of %s: V %v, loops %v, split %v", own.Kind, kind, own.Kind.Vee(), own.Kind.Loops(), own.Kind.Split())
				}
				for rank := range stages {
					if got := order.Of(own, rank); !slices.Equal(got, rows[rank]) {
						t.Errorf("%s: rank %d runs %v, %s runs %v", own.Kind, rank, got, kind, rows[rank])
					}
				}
			}
		}
	}
}

func TestGivenPhases(t *testing.T) {
	schedule := costmodel.Schedule{Kind: "order:FFF,BF*6,BBB/FF,FB*7,BB", Stages: 2, Chunks: 1, MicroBatches: 9}
	if err := schedule.Check(); err != nil {
		t.Fatal(err)
	}
	want := []order.Phase{
		{[]order.Action{{order.Forward, 0, 0}, {order.Forward, 0, 1}, {order.Forward, 0, 2}}, 1, 3},
		{[]order.Action{{order.Backward, 0, 0}, {order.Forward, 0, 3}}, 6, 1},
		{[]order.Action{{order.Backward, 0, 6}, {order.Backward, 0, 7}, {order.Backward, 0, 8}}, 1, 3},
	}
	if got := order.Phases(schedule, 0); !slices.EqualFunc(got, want, func(a, b order.Phase) bool {
		return slices.Equal(a.Actions, b.Actions) && a.Times == b.Times && a.Advance == b.Advance
	}) {
		t.Errorf("%v", got)
	}
}

package order_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// The first of two ranks runs two forwards before its first backward.
func ExampleOf() {
	schedule := costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2, Chunks: 1, MicroBatches: 3}
	for _, action := range order.Of(schedule, 0) {
		fmt.Printf("%v%d ", action.Kind, action.MicroBatch)
	}
	// Output: F0 F1 B0 F2 B1 B2
}

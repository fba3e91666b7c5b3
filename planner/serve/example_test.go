package serve_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/planner/serve"
)

// The longest context of a small decoder on two unequal GPUs.
func ExampleSolve() {
	block := serving.Block{Bytes: 100 << 20, Key: 1024, Value: 1024, Heads: 32, FeedForward: 11008}
	model := &serving.Model{Width: 4096, Vocabulary: 32000, Trained: 32768, Output: 100 << 20}
	for range 8 {
		model.Blocks = append(model.Blocks, block)
	}
	answer, err := serve.Solve(serve.Question{
		Model:   model,
		Devices: []serve.Device{{Budget: 1536 << 20}, {Budget: 1024 << 20}},
		Set:     serving.LlamaCPP{Sequences: 1, KeyType: "f16", ValueType: "f16", UBatch: 512, Outputs: 1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Set.Context, "tokens; units of each GPU:", answer.Counts)
	// Output:
	// 32768 tokens; units of each GPU: [5 4]
}

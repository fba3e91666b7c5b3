package serving_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/serving"
)

// A small decoder with two equal blocks, on two GPUs.
func ExampleLlamaCPP_Devices() {
	block := serving.Block{Bytes: 10 << 20, Key: 256, Value: 256, Heads: 4, FeedForward: 1024}
	model := &serving.Model{Blocks: []serving.Block{block, block}, Input: 4 << 20, Output: 4 << 20, Width: 256, Vocabulary: 8192}
	set := serving.LlamaCPP{Context: 4096, Sequences: 1, KeyType: "f16", ValueType: "f16", UBatch: 512, Outputs: 1, Pipelined: true}
	devices, host := set.Devices(model, []int{1, 2})
	for i, memory := range devices {
		fmt.Printf("GPU %d: %d MiB of weights, %d MiB of cache\n", i, memory.Weights>>20, memory.Cache>>20)
	}
	fmt.Printf("host: %d MiB of weights\n", host.Weights>>20)
	// Output:
	// GPU 0: 10 MiB of weights, 4 MiB of cache
	// GPU 1: 14 MiB of weights, 4 MiB of cache
	// host: 4 MiB of weights
}

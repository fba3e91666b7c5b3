package weights_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

const tinyLlama = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 12,
	"num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 5, "torch_dtype": "bfloat16"}`

// A model of a config alone gets weights, is saved, and read from there.
func Example() {
	dir, err := os.MkdirTemp("", "weights")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of this example's own
	saved := filepath.Join(dir, "saved")
	if err := save(saved); err != nil {
		fmt.Println(err)
		return
	}
	graph, err := hf.FromCheckpoint(saved)
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := weights.Checkpoint(graph)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = source.Stream(context.Background(), "model.norm.weight", modelgraph.F32, func(chunk []byte) error {
		fmt.Println(len(chunk), "bytes, the first value", math.Float32frombits(binary.LittleEndian.Uint32(chunk)))
		return nil
	})
	fmt.Println(err, source.Close())
	// Output:
	// 32 bytes, the first value 1
	// <nil> <nil>
}

func save(folder string) error {
	graph, err := hf.FromConfig("config.json", []byte(tinyLlama))
	if err != nil {
		return err
	}
	file, err := weights.CreateModel(folder, graph, modelgraph.BF16)
	if err != nil {
		return err
	}
	defer file.Discard() //nolint:errcheck // nothing is left where Commit was not reached
	source := weights.Random(graph, 1)
	for _, entry := range weights.Parameters(graph, modelgraph.BF16) {
		offset := int64(0)
		err := source.Stream(context.Background(), entry.Name, entry.DType, func(chunk []byte) error {
			offset += int64(len(chunk))
			return file.WriteAt(entry.Name, offset-int64(len(chunk)), chunk)
		})
		if err != nil {
			return err
		}
	}
	return file.Commit()
}

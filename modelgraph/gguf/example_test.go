package gguf_test

import (
	"fmt"
	"os"

	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// open opens a file, and returns its size.
func open(path string) (*os.File, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	return file, info.Size(), err
}

func ExampleRead() {
	file, err := gguf.Read("../../fixtures/gguf/tiny.gguf", open)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Architecture, "with", file.Number("block_count", 0), "blocks and", len(file.Tensors), "tensors")
	fmt.Println(file.Tensors[0].Name, file.Tensors[0].DType, file.Tensors[0].Shape)
	// Output:
	// llama with 4 blocks and 39 tensors
	// token_embd.weight Q4_K [256 256]
}

package safetensors_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Only the header is read: where each tensor lies, and of what type it is.
func ExampleReadFolder() {
	dir, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of this example's own
	header := `{"norm.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	file = append(file, make([]byte, 8)...)
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), file, 0o600); err != nil {
		fmt.Println(err)
		return
	}
	checkpoint, err := safetensors.ReadFolder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tensor := range checkpoint.Tensors {
		fmt.Println(tensor.Name, tensor.DType, tensor.Shape, tensor.Bytes(), "bytes in", checkpoint.Files[tensor.File])
	}
	// Output:
	// norm.weight BF16 [4] 8 bytes in model.safetensors
}

package weights

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// tinyConfig is a llama of a few hundred parameters, lm_head tied to the
// embedding.
const tinyConfig = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 12,
	"num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 5, "tie_word_embeddings": true, "torch_dtype": "float32"}`

func tiny(tb testing.TB, config string) *modelgraph.Graph {
	tb.Helper()
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(config)))(tb)
	return graph
}

// number is the value that a test's checkpoint has at a place of a parameter:
// different ones, exact in every type.
func number(parameter, element int) float32 { return float32(parameter*16+element%16) / 64 }

// rawOf are these numbers as a type.
func rawOf(parameter int, count int64, dtype modelgraph.DType) []byte {
	var raw []byte
	for i := range int(count) {
		value := number(parameter, i)
		switch dtype {
		case modelgraph.F32, modelgraph.BF16:
			raw = appendValues(raw, []float32{value}, dtype)
		case modelgraph.F16: // small multiples of 1/64
			raw = binary.LittleEndian.AppendUint16(raw, toHalf(value))
		default:
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(float64(value)))
		}
	}
	return raw
}

// toHalf narrows what half holds exactly.
func toHalf(value float32) uint16 {
	for bits := range 1 << 15 {
		if half(uint16(bits)) == value {
			return uint16(bits)
		}
	}
	panic("no such half")
}

// writeCheckpoint writes a model folder by hand.
func writeCheckpoint(tb testing.TB, folder, config string, dtype modelgraph.DType) {
	tb.Helper()
	graph := tiny(tb, config)
	entries := Parameters(graph, dtype)
	tensors := make([]safetensors.Tensor, len(entries))
	var data []byte
	for i, entry := range entries {
		tensors[i] = safetensors.Tensor{Name: entry.Name, DType: dtype, Shape: entry.Shape}
		data = append(data, rawOf(i, numel(entry.Shape), dtype)...)
	}
	head := fixtures.Must(safetensors.Encode(nil, tensors))(tb)
	writeFile(tb, filepath.Join(folder, "config.json"), []byte(config))
	writeFile(tb, filepath.Join(folder, "model.safetensors"), append(head, data...))
}

func numel(shape []int64) int64 {
	count := int64(1)
	for _, dim := range shape {
		count *= dim
	}
	return count
}

func writeFile(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		tb.Fatal(err)
	}
}

func readGraph(tb testing.TB, folder string) *modelgraph.Graph {
	tb.Helper()
	graph := fixtures.Must(hf.FromCheckpoint(folder))(tb)
	return graph
}

// streamed is all that a source hands over.
func streamed(source Source, name string, dtype modelgraph.DType) ([]byte, error) {
	var all []byte
	err := source.Stream(context.Background(), name, dtype, func(chunk []byte) error {
		all = append(all, chunk...)
		return nil
	})
	return all, err
}

// fill writes everything of a file from a source.
func fill(file *File, source Source, entries []Entry) error {
	for _, entry := range entries {
		offset := int64(0)
		err := source.Stream(context.Background(), entry.Name, entry.DType, func(chunk []byte) error {
			offset += int64(len(chunk))
			return file.WriteAt(entry.Name, offset-int64(len(chunk)), chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// names are those in a folder.
func names(tb testing.TB, folder string) string {
	tb.Helper()
	entries := fixtures.Must(os.ReadDir(folder))(tb)
	found := []string{}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return fmt.Sprint(found)
}

// unnamed reports whether files of a folder can be without a name.
func unnamed(t *testing.T, folder string) bool {
	t.Helper()
	handle, temporary, err := openUnnamed(folder, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close() //nolint:errcheck // nothing was written
	if temporary == "" {
		return true
	}
	if err := os.Remove(temporary); err != nil {
		t.Fatal(err)
	}
	return false
}

package hf

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// stored is a tensor of a test checkpoint. Its data is fill, repeated.
type stored struct {
	name  string
	dtype modelgraph.DType
	shape []int64
	fill  byte
}

func (s stored) bytes() int64 { return tables.Elements(s.shape) * s.dtype.Bits() / 8 }

func writeFile(tb testing.TB, path string, tensors []stored) {
	tb.Helper()
	header := make(map[string]any)
	var at int64
	for _, s := range tensors {
		shape := s.shape
		if shape == nil {
			shape = []int64{}
		}
		header[s.name] = map[string]any{"dtype": s.dtype.String(), "shape": shape, "data_offsets": []int64{at, at + s.bytes()}}
		at += s.bytes()
	}
	text := fixtures.Must(json.Marshal(header))(tb)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	out = append(out, text...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		tb.Fatal(err)
	}
	if err := os.Truncate(path, int64(len(out))+at); err != nil {
		tb.Fatal(err)
	}
	writeFills(tb, path, int64(len(out)), tensors)
}

// writeFills writes the data of tensors that have a fill; the rest is a hole.
func writeFills(tb testing.TB, path string, at int64, tensors []stored) {
	tb.Helper()
	f := fixtures.Must(os.OpenFile(path, os.O_WRONLY, 0))(tb)
	defer f.Close()
	for _, s := range tensors {
		if s.fill != 0 {
			data := make([]byte, s.bytes())
			for i := range data {
				data[i] = s.fill
			}
			if _, err := f.WriteAt(data, at); err != nil {
				tb.Fatal(err)
			}
		}
		at += s.bytes()
	}
}

// writeShards spreads the tensors over n files with an index.
func writeShards(tb testing.TB, dir string, tensors []stored, n int) {
	tb.Helper()
	weightMap := make(map[string]string)
	for i := range n {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
		part := tensors[len(tensors)*i/n : len(tensors)*(i+1)/n]
		writeFile(tb, filepath.Join(dir, name), part)
		for _, s := range part {
			weightMap[s.name] = name
		}
	}
	text := fixtures.Must(json.Marshal(map[string]any{"weight_map": weightMap}))(tb)
	write(tb, filepath.Join(dir, "model.safetensors.index.json"), text)
}

func write(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// checkpointOf lists the parameters and saved buffers of a graph under their module names.
func checkpointOf(g *modelgraph.Graph, d modelgraph.DType) []stored {
	var out []stored
	for i := range g.Layers {
		l := &g.Layers[i]
		for _, p := range l.Params {
			if p.Owner == "" {
				out = append(out, stored{name: modelgraph.FullName(l.Name, p.Name), dtype: d, shape: p.Shape})
			}
		}
		for _, b := range l.Buffers {
			if b.Persistent {
				out = append(out, stored{name: modelgraph.FullName(l.Name, b.Name), dtype: d, shape: b.Shape})
			}
		}
	}
	return out
}

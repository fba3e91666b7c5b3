package hf

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestTensors compares the public models with the tensors that Transformers 5.17 registers for
// their full configs (fixtures/tensors). It compares totals, names, shapes, order, ties, buffers
// and no-split instances. The configs name no class.
func TestTensors(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/tensors/*.json.gz")
	if err != nil || len(files) != 18 {
		t.Fatalf("%d tensor files, want 18: %v", len(files), err)
	}
	for _, file := range files {
		c := readTensors(t, file)
		t.Run(filepath.Base(file), func(t *testing.T) {
			c.check(t)
		})
	}
}

func readTensors(t *testing.T, file string) *oracleCase {
	t.Helper()
	c := new(oracleCase)
	readGzip(t, file, c)
	for _, b := range c.Buffers { // the files count no elements of buffers
		n := int64(1)
		shape, _ := b[1].([]any)
		for _, d := range shape {
			size, _ := d.(float64)
			n *= int64(size)
		}
		c.BuffersNumel += n
	}
	return c
}

func layerNamed(g *modelgraph.Graph, name string) (int, bool) {
	i := slices.IndexFunc(g.Layers, func(l modelgraph.Layer) bool { return l.Name == name })
	return i, i >= 0
}

func unitNamed(g *modelgraph.Graph, name string) (int, bool) {
	i := slices.IndexFunc(g.Units, func(unit modelgraph.Unit) bool { return unit.Name == name })
	return i, i >= 0
}

// Types of quantised storage.
var uint8Type, int32Type, float8Type = typeNamed("U8"), typeNamed("I32"), typeNamed("F8_E4M3")

// bufferCount is the number of elements in a graph's buffers.
func bufferCount(g *modelgraph.Graph) int64 {
	var total int64
	for i := range g.Layers {
		for j := range g.Layers[i].Buffers {
			total += g.Layers[i].Buffers[j].Numel
		}
	}
	return total
}

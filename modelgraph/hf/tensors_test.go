package hf

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestTensors holds the public models to what Transformers 5.17 registers for
// their full configs (fixtures/tensors): totals, names, shapes, order, ties,
// buffers and no-split instances. The configs name no class.
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

// layerNamed is the index of the layer of that name.
func layerNamed(g *modelgraph.Graph, name string) (int, bool) {
	i := slices.IndexFunc(g.Layers, func(l modelgraph.Layer) bool { return l.Name == name })
	return i, i >= 0
}

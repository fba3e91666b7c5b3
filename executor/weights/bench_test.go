package weights

import (
	"context"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

const embedding = "model.embed_tokens.weight"

// BenchmarkRandom draws 2²² values.
func BenchmarkRandom(b *testing.B) {
	source := Random(tiny(b, bigConfig), 1)
	b.SetBytes(4 << 22)
	for b.Loop() {
		if err := source.Stream(context.Background(), embedding, modelgraph.F32, func([]byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheckpoint reads as many, stored as they are wanted or not.
func BenchmarkCheckpoint(b *testing.B) {
	folder := b.TempDir()
	writeCheckpoint(b, folder, bigConfig, modelgraph.BF16)
	source, err := Checkpoint(readGraph(b, folder))
	if err != nil {
		b.Fatal(err)
	}
	for _, dtype := range []modelgraph.DType{modelgraph.BF16, modelgraph.F32} {
		b.Run(dtype.String(), func(b *testing.B) {
			b.SetBytes(2 << 22)
			for b.Loop() {
				if err := source.Stream(context.Background(), embedding, dtype, func([]byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	if err := source.Close(); err != nil {
		b.Fatal(err)
	}
}

package backendtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/modelgraph"
)

// RandomChain returns a random chain of blocks, in units of one layer or of a block. Norms are
// before, after or around the branches, or there are none.
func RandomChain(random *rand.Rand) (*modelgraph.Graph, error) {
	pick := func(values ...int64) int64 { return values[random.IntN(len(values))] }
	yes := func() bool { return random.IntN(2) == 0 }
	dim, vocab := 4*pick(1, 3, 5, 8), pick(7, 40, 130)
	builder := modelgraph.Builder{Name: "drawn", DType: modelgraph.BF16, Bias: yes()}
	stream := builder.Add("embed", modelgraph.Embedding{Vocab: vocab, Dim: dim})
	style := []modelgraph.NormStyle{modelgraph.RMSNorm, modelgraph.LayerNorm, modelgraph.GemmaRMSNorm}[random.IntN(3)]
	norm := func(name, from string) string {
		return builder.Add(name, modelgraph.Norm{Dim: dim, Style: style, Epsilon: 1e-5}, from)
	}
	if yes() {
		stream = builder.Add("positions", modelgraph.Embedding{Vocab: 32, Dim: dim, Index: modelgraph.PositionIndex}, stream)
	}
	inside := false // a unit: only there a branch has norms, as two tensors would cross the border
	branch := func(name string, op modelgraph.Op) {
		before, after := inside && yes(), inside && yes()
		from := stream
		if before {
			from = norm(name+".before", stream)
		}
		if !after {
			stream = builder.Add(name, op, from, stream)
			return
		}
		made := builder.Add(name, op, from)
		stream = builder.Add(name+".after", modelgraph.Norm{Dim: dim, Style: style, Epsilon: 1e-5, Post: true}, made, stream)
	}
	blocks := random.IntN(4)
	for i := range blocks {
		add := func() {
			for j := range 1 + random.IntN(3) {
				kv := pick(1, 2)
				attention := modelgraph.Attention{
					Dim: dim, Heads: kv * pick(1, 3), KVHeads: kv, HeadDim: 2 * pick(1, 4), Rope: yes(), Fused: yes(), Window: pick(0, 0, 3), ScoreCap: float64(pick(0, 30)),
				}
				if yes() {
					attention.QKNorm, attention.QKEpsilon = modelgraph.RMSNorm, 1e-6
				}
				branch(fmt.Sprintf("attention%d_%d", i, j), attention)
				gated := yes()
				branch(fmt.Sprintf("mlp%d_%d", i, j), modelgraph.MLP{Dim: dim, Hidden: pick(3, 12, 20), Gated: gated, Fused: gated && yes(), Activation: "gelu"})
				if yes() {
					stream = norm(fmt.Sprintf("norm%d_%d", i, j), stream)
				}
			}
		}
		if inside = yes(); inside {
			builder.Block(fmt.Sprintf("block%d", i), add)
		} else {
			add()
		}
	}
	builder.Add("head", modelgraph.Head{Dim: dim, Vocab: vocab, SoftCap: yes(), LogitCap: 30}, stream)
	if yes() {
		builder.Tie("embed.weight", "head.weight")
	}
	return builder.Build()
}

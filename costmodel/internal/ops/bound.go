package ops

import "github.com/devmap-dev/devmap/modelgraph"

// Bound is more than any figure in bytes of the op's cost, in floating point:
// where it is far below 2^63, the integers of [Of] cannot overflow.
func Bound(op modelgraph.Op, s *Shape) float64 {
	var b bound
	switch op := op.(type) {
	case modelgraph.Embedding:
		b.width = float64(op.Dim)
	case modelgraph.Norm:
		b.width = float64(op.Dim)
	case modelgraph.Attention:
		b.attention(op, s)
	case modelgraph.MLP:
		b.width = float64(op.Dim) + 8*float64(op.Hidden)
		b.matrix = float64(op.Dim) * float64(op.Hidden)
	case modelgraph.MoE:
		b.width = float64(op.Experts) + 64*float64(op.TopK) + float64(1+op.TopK)*(float64(op.Dim)+4*float64(op.Hidden)) + 8*float64(op.SharedHidden)
		b.matrix = float64(op.Experts)*float64(op.Dim)*float64(1+op.Hidden) + float64(op.Dim)*float64(op.SharedHidden)
	case modelgraph.Head:
		b.width = float64(op.Dim) + float64(op.Vocab)
		b.matrix = float64(op.Dim) * float64(op.Vocab)
	case modelgraph.Linear:
		b.width = float64(op.In) + 6*float64(op.Out)
	case modelgraph.Conv:
		b.width = float64(max(1, op.TokenRatio)) * (float64(op.In)*float64(max(1, op.Stride)) + 6*float64(op.Out))
	case modelgraph.StateSpace:
		b.width = float64(op.Dim) + float64(op.Inner)*(8+float64(op.State)+float64(op.Kernel))
	case modelgraph.Rotary:
		b.width = float64(op.HeadDim)
	}
	for i := range s.Adapters {
		a := &s.Adapters[i]
		b.width += float64(a.In) + float64(a.Out) + float64(a.Rank)
	}
	tokens := max(float64(s.Tokens), float64(s.Encoder), float64(s.Length), float64(s.Batch)*float64(s.Cache), float64(s.Logits))
	weights := float64(s.NewGrads) + float64(s.SecondGrads) + 8*float64(s.Weights)
	return 64*(tokens+1)*(b.width+64) + 16*b.scores + 8*b.matrix + 2*weights
}

// bound counts elements: kept a token, of score matrices, of weights.
type bound struct{ width, scores, matrix float64 }

func (b *bound) attention(op modelgraph.Attention, s *Shape) {
	head := float64(op.HeadDim) + float64(op.ValueDim)
	b.width = float64(op.Dim) + 4*(float64(op.Heads)+float64(op.KVHeads))*(1+head) + float64(op.QRank) + float64(op.KVRank) + float64(op.RopeDim)
	b.matrix = float64(op.Dim) * (float64(op.Heads) + float64(op.KVHeads)) * head
	length := max(float64(s.Length), float64(s.Encoder)/float64(max(1, s.Batch)))
	b.scores = float64(op.Heads) * float64(s.Tokens) * length
}

package kernel

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Scores are computed for a block of queries and a block of keys at a time. Attention's memory then
// does not grow with the sequence, and gonum does not split the product of two blocks.
const (
	queryBlock = 64
	keyBlock   = 128
)

// shape is the sizes and constants of attention's kernels. Rows of a sequence
// are contiguous, and so are the heads of a row.
type shape struct {
	sequences, seq, heads, kv, dim int64
	causal                         bool
	window                         int64 // how many keys a query sees, itself with them; 0: all
	scale                          float64
	limit                          softCap
}

func (call *Call) shape() *shape {
	return &shape{
		sequences: call.size("sequences", 0), seq: call.size("seq", 0),
		heads: call.size("heads", 0), kv: call.size("kv", 0), dim: call.size("dim", 0),
		causal: call.size("causal", 0) == 1, window: call.size("window", 0),
		scale: call.number("scale", 1), limit: softCap(call.number("cap", 0)),
	}
}

// sees is the keys [first, end) that a query sees.
func (shape *shape) sees(query int64) (first, end int64) {
	end = shape.seq
	if shape.causal {
		end = query + 1
	}
	if shape.window > 0 {
		first = max(0, query-shape.window+1)
	}
	return first, end
}

// seen is the queries [first, end) that see one of the keys [key, last].
func (shape *shape) seen(key, last int64) (first, end int64) {
	end = shape.seq
	if shape.causal {
		first = key
	}
	if shape.window > 0 {
		end = min(end, last+shape.window)
	}
	return first, end
}

// group is the head of keys and values that a head of queries belongs to.
func (shape *shape) group(head int64) int64 { return head / (shape.heads / shape.kv) }

// score fills scores with those of queries and keys.
func (shape *shape) score(queries, keys, scores blas32.General) {
	blas32.Gemm(blas.NoTrans, blas.Trans, float32(shape.scale), queries, keys, 0, scores)
	if shape.limit == 0 {
		return
	}
	for i, score := range scores.Data {
		scores.Data[i] = shape.limit.of(score, exactly)
	}
}

// exp is e^value in fp32.
func exp(value float32) float32 { return float32(math.Exp(float64(value))) }

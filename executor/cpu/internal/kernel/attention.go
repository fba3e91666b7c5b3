package kernel

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// softmax adds up Σ exp(score)·value / Σ exp(score) of each row while scores come block by block.
// Its sums are of exp(score - most), and shrink when a larger score comes (FlashAttention-2, arXiv
// 2307.08691, algorithm 1).
type softmax struct {
	most []float32
	sum  []float64
	out  blas32.General
}

func newSoftmax(scratch *scratch, rows, columns int64) *softmax {
	return &softmax{most: scratch.take(rows), sum: make([]float64, rows), out: tile(rows, columns, scratch.take(rows*columns))}
}

// begin resets it to a number of rows without scores.
func (softmax *softmax) begin(rows int64) {
	softmax.most, softmax.sum = softmax.most[:rows], softmax.sum[:rows]
	softmax.out = tile(rows, int64(softmax.out.Cols), softmax.out.Data[:cap(softmax.out.Data)])
	for i := range softmax.most {
		softmax.most[i], softmax.sum[i] = float32(math.Inf(-1)), 0
	}
	clear(softmax.out.Data)
}

// row replaces the scores of row i in [first, end) by their weights, and the others by 0.
func (softmax *softmax) row(i int64, scores []float32, first, end int64) {
	if first >= end {
		clear(scores)
		return
	}
	clear(scores[:first])
	clear(scores[end:])
	scores = scores[first:end]
	most := softmax.most[i]
	for _, score := range scores {
		most = max(most, score)
	}
	if most > softmax.most[i] {
		shrink := math.Exp(float64(softmax.most[i]) - float64(most))
		softmax.most[i], softmax.sum[i] = most, softmax.sum[i]*shrink
		blas32.Scal(float32(shrink), blas32.Vector{N: softmax.out.Cols, Inc: 1, Data: line(softmax.out, i)})
	}
	sum := 0.
	for j, score := range scores {
		weight := exp(score - most)
		scores[j] = weight
		sum += float64(weight)
	}
	softmax.sum[i] += sum
}

// add adds the values, multiplied by the weights that row wrote.
func (softmax *softmax) add(weights, values blas32.General) {
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, weights, values, 1, softmax.out)
}

// result returns a row's output, and the logarithm of Σ exp(score).
func (softmax *softmax) result(i int64) (out []float32, lse float64) {
	out = line(softmax.out, i)
	for j := range out {
		out[j] = float32(float64(out[j]) / softmax.sum[i])
	}
	return out, float64(softmax.most[i]) + math.Log(softmax.sum[i])
}

// attention is softmax(q·kᵀ)·v. A block of a head's queries is computed
// independently, so that no result depends on the number of workers.
func attention(call *Call) error {
	shape := call.shape()
	blocks := (shape.seq + queryBlock - 1) / queryBlock
	spread(shape.sequences*shape.heads*blocks, func(scratch *scratch) func(index int64) {
		run := &attending{
			shape: shape, queries: call.matrix("q"), keys: call.matrix("k"), values: call.matrix("v"), out: call.matrix("y"), lse: call.matrix("lse"),
			softmax: newSoftmax(scratch, queryBlock, shape.dim), scores: scratch.take(queryBlock * keyBlock),
			query: scratch.take(queryBlock * shape.dim), key: scratch.take(keyBlock * shape.dim),
		}
		return func(index int64) {
			run.block(index/blocks/shape.heads, index/blocks%shape.heads, index%blocks*queryBlock)
		}
	})
	return nil
}

// attending is the state of a worker of attention.
type attending struct {
	*shape
	queries, keys, values, out, lse *Matrix
	softmax                         *softmax
	scores, query, key              []float32
}

// block makes the output of a block of queries.
func (run *attending) block(sequence, head, first int64) {
	count, row, group := min(queryBlock, run.seq-first), sequence*run.seq, run.group(head)
	queries := run.queries.block(row+first, head*run.dim, count, run.dim, run.query)
	softmax := run.softmax
	softmax.begin(count)
	from, _ := run.sees(first)
	_, end := run.sees(first + count - 1)
	for key := from; key < end; key += keyBlock {
		width := min(keyBlock, end-key)
		scores := tile(count, width, run.scores)
		run.score(queries, run.keys.block(row+key, group*run.dim, width, run.dim, run.key), scores)
		for i := range count {
			low, high := run.sees(first + i)
			softmax.row(i, line(scores, i), max(low-key, 0), min(high-key, width))
		}
		softmax.add(scores, run.values.block(row+key, group*run.dim, width, run.dim, run.key))
	}
	for i := range count {
		out, lse := softmax.result(i)
		run.out.Store(row+first+i, head*run.dim, out)
		if run.lse != nil {
			run.lse.Store(row+first+i, head, []float32{float32(lse)})
		}
	}
}

package kernel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// attentionDelta computes Σ y·dy of each row and head, which the gradients of all its scores share.
func attentionDelta(call *Call) error {
	heads, dim := call.size("heads", 0), call.size("dim", 0)
	out, gradient, delta := call.matrix("y"), call.matrix("dy"), call.matrix("delta")
	inRows(call.size("rows", 0), heads*dim, func(first, last int64) {
		values, slopes, sums := make([]float32, heads*dim), make([]float32, heads*dim), make([]float32, heads)
		for i := first; i < last; i++ {
			out.Load(i, 0, values)
			gradient.Load(i, 0, slopes)
			for head := range heads {
				sum := 0.
				for j := head * dim; j < (head+1)*dim; j++ {
					sum += float64(values[j]) * float64(slopes[j])
				}
				sums[head] = float32(sum)
			}
			delta.Store(i, 0, sums)
		}
	})
	return nil
}

// learning is the state of a worker of attention's backward. It recomputes the scores block by
// block, and their softmax from the rows' log-sum-exp.
type learning struct {
	*shape
	queries, keys, values, slopes, lse, delta *Matrix
	query, slope, key, value                  []float32 // a block of each
	weights, gradients                        []float32 // of scores
	logarithm, product                        []float32 // lse and delta of one row
}

func (call *Call) learning(shape *shape, scratch *scratch) *learning {
	block := func(rows, columns int64) []float32 { return scratch.take(rows * columns) }
	return &learning{
		shape: shape, queries: call.matrix("q"), keys: call.matrix("k"), values: call.matrix("v"), slopes: call.matrix("dy"), lse: call.matrix("lse"), delta: call.matrix("delta"),
		query: block(queryBlock, shape.dim), slope: block(queryBlock, shape.dim), key: block(keyBlock, shape.dim), value: block(keyBlock, shape.dim),
		weights: block(queryBlock, keyBlock), gradients: block(queryBlock, keyBlock), logarithm: block(1, 1), product: block(1, 1),
	}
}

// met is a block of a head's queries with a block of its keys.
type met struct {
	queries, slopes, keys blas32.General
	weights, gradients    blas32.General // of their scores
}

// meet computes the weights of scores and their gradients weight·(dy·v - delta)·scale, through the
// cap. Both are 0 if a query does not see a key.
func (run *learning) meet(sequence, head, query, key int64) (met met) {
	row, group := sequence*run.seq, run.group(head)
	rows, width := min(queryBlock, run.seq-query), min(keyBlock, run.seq-key)
	met.queries = run.queries.block(row+query, head*run.dim, rows, run.dim, run.query)
	met.slopes = run.slopes.block(row+query, head*run.dim, rows, run.dim, run.slope)
	met.keys = run.keys.block(row+key, group*run.dim, width, run.dim, run.key)
	values := run.values.block(row+key, group*run.dim, width, run.dim, run.value)
	met.weights, met.gradients = tile(rows, width, run.weights), tile(rows, width, run.gradients)
	run.score(met.queries, met.keys, met.weights)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, met.slopes, values, 0, met.gradients)
	for i := range rows {
		run.lse.Load(row+query+i, head, run.logarithm)
		run.delta.Load(row+query+i, head, run.product)
		first, end := run.sees(query + i)
		scale := run.scale
		if end-first == 1 {
			scale = 0 // the softmax of one score is 1, whatever it is
		}
		first, end = max(first-key, 0), min(end-key, width)
		weights, gradients := line(met.weights, i), line(met.gradients, i)
		for j, score := range weights {
			if int64(j) < first || int64(j) >= end {
				weights[j], gradients[j] = 0, 0
				continue
			}
			weights[j] = exp(score - run.logarithm[0])
			gradients[j] = weights[j] * (gradients[j] - run.product[0]) * float32(run.limit.slope(score)*scale)
		}
	}
	return met
}

// attentionBackward makes the gradients of queries, keys and values.
func attentionBackward(call *Call) error {
	call.keySums()
	call.querySums()
	return nil
}

// keySums makes the gradients of keys and values. A block of a group's
// keys is computed independently, over its heads and the queries that see it.
func (call *Call) keySums() {
	shape, dk, dv := call.shape(), call.matrix("dk"), call.matrix("dv")
	blocks := (shape.seq + keyBlock - 1) / keyBlock
	spread(shape.sequences*shape.kv*blocks, func(scratch *scratch) func(index int64) {
		run, made := call.learning(shape, scratch), scratch.take(2*keyBlock*shape.dim)
		return func(index int64) {
			sequence, group, key := index/blocks/shape.kv, index/blocks%shape.kv, index%blocks*keyBlock
			width, shared := min(keyBlock, shape.seq-key), shape.heads/shape.kv
			clear(made)
			keys, values := tile(width, shape.dim, made), tile(width, shape.dim, made[width*shape.dim:])
			from, end := shape.seen(key, key+width-1)
			for head := group * shared; head < (group+1)*shared; head++ {
				for query := from / queryBlock * queryBlock; query < end; query += queryBlock {
					met := run.meet(sequence, head, query, key)
					blas32.Gemm(blas.Trans, blas.NoTrans, 1, met.gradients, met.queries, 1, keys)
					blas32.Gemm(blas.Trans, blas.NoTrans, 1, met.weights, met.slopes, 1, values)
				}
			}
			dk.storeBlock(sequence*shape.seq+key, group*shape.dim, keys)
			dv.storeBlock(sequence*shape.seq+key, group*shape.dim, values)
		}
	})
}

// querySums makes the gradient of queries, each block of a head's independently.
func (call *Call) querySums() {
	shape, dq := call.shape(), call.matrix("dq")
	blocks := (shape.seq + queryBlock - 1) / queryBlock
	spread(shape.sequences*shape.heads*blocks, func(scratch *scratch) func(index int64) {
		run, made := call.learning(shape, scratch), scratch.take(queryBlock*shape.dim)
		return func(index int64) {
			sequence, head, query := index/blocks/shape.heads, index/blocks%shape.heads, index%blocks*queryBlock
			count := min(queryBlock, shape.seq-query)
			clear(made)
			queries := tile(count, shape.dim, made)
			from, _ := shape.sees(query)
			_, end := shape.sees(query + count - 1)
			for key := from / keyBlock * keyBlock; key < end; key += keyBlock {
				met := run.meet(sequence, head, query, key)
				blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, met.gradients, met.keys, 1, queries)
			}
			dq.storeBlock(sequence*shape.seq+query, head*shape.dim, queries)
		}
	})
}

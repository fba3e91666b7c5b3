package kernel

import (
	"math"
)

// cache writes keys and values at their positions in the rings of their sequences. If a prompt is
// longer than the ring, only its last positions are written.
func cache(call *Call) error {
	sequences, positions := call.size("sequences", 1), call.size("positions", 1)
	for _, roles := range [][2]string{{"k", "keys"}, {"v", "values"}} {
		from, ring := call.matrix(roles[0]), call.matrix(roles[1])
		each := from.Rows / sequences
		row := make([]float32, call.size("columns", from.Columns))
		for i := range from.Rows {
			if i%each < each-positions {
				continue
			}
			from.Load(i, 0, row)
			ring.Store(i/each*positions+call.position(i)%positions, 0, row)
		}
	}
	return nil
}

// attentionDecode is attention of one query per sequence to its cache. Workers take spans of
// positions: several spans make parts for attention_join, a single one makes the output. A ring is
// no longer than the window that it serves, so that a query sees everything in it.
func attentionDecode(call *Call) error {
	if call.matrix("y") == nil {
		if _, err := call.need("parts"); err != nil {
			return err
		}
	}
	shape, positions, span := call.shape(), call.size("positions", 1), call.size("span", 1)
	parts := (positions + span - 1) / span
	shared := shape.heads / shape.kv
	spread(shape.sequences*shape.kv*parts, func(scratch *scratch) func(index int64) {
		run := &decoding{
			shape: shape, queries: call.matrix("q"), keys: call.matrix("keys"), values: call.matrix("values"), out: call.matrix("y"), parts: call.matrix("parts"),
			softmax: newSoftmax(scratch, shared, shape.dim), scores: scratch.take(shared * span), query: scratch.take(shared * shape.dim), key: scratch.take(span * shape.dim),
			positions: positions, written: min(positions, call.position(0)+1),
		}
		return func(index int64) {
			part := index % parts
			run.part(index/parts/shape.kv, index/parts%shape.kv, part, part*span, min(positions, (part+1)*span))
		}
	})
	return nil
}

// decoding is the state of a worker of attention's decode.
type decoding struct {
	*shape
	queries, keys, values, out, parts *Matrix
	softmax                           *softmax
	scores, query, key                []float32
	positions, written                int64 // of a sequence's ring
}

// part attends with the heads of a group to positions [first, end) of the ring.
func (run *decoding) part(sequence, group, part, first, end int64) {
	shared, width, column := run.heads/run.kv, end-first, group*run.dim
	softmax := run.softmax
	softmax.begin(shared)
	if first < run.written {
		// The heads of a group are contiguous in a row: as rows of a tile they are a block.
		queries := tile(shared, run.dim, run.query)
		run.queries.Load(sequence, group*shared*run.dim, queries.Data)
		row := sequence*run.positions + first
		width = min(width, run.written-first) // unwritten values may be NaN
		scores := tile(shared, width, run.scores)
		run.score(queries, run.keys.block(row, column, width, run.dim, run.key), scores)
		for i := range shared {
			softmax.row(i, line(scores, i), 0, width)
		}
		softmax.add(scores, run.values.block(row, column, width, run.dim, run.key))
	}
	for i := range shared {
		head := group*shared + i
		if run.parts == nil {
			out, _ := softmax.result(i)
			run.out.Store(sequence, head*run.dim, out)
			continue
		}
		row, column := part*run.sequences+sequence, head*(run.dim+2)
		run.parts.Store(row, column, line(softmax.out, i))
		run.parts.Store(row, column+run.dim, []float32{softmax.most[i], float32(softmax.sum[i])})
	}
}

// attentionJoin joins the parts of each head in their order.
func attentionJoin(call *Call) error {
	rows, heads, dim, count := call.size("rows", 0), call.size("heads", 0), call.size("dim", 0), call.size("parts", 0)
	parts, out := call.matrix("parts"), call.matrix("y")
	part, sums, joined := make([]float32, dim+2), make([]float64, dim+1), make([]float32, dim)
	for index := range rows * heads {
		row, head := index/heads, index%heads
		most := math.Inf(-1)
		for i := range count {
			parts.Load(i*rows+row, head*(dim+2), part)
			most = max(most, float64(part[dim]))
		}
		clear(sums)
		for i := range count {
			parts.Load(i*rows+row, head*(dim+2), part)
			scale := math.Exp(float64(part[dim]) - most)
			for j := range dim {
				sums[j] += scale * float64(part[j])
			}
			sums[dim] += scale * float64(part[dim+1])
		}
		for j := range joined {
			joined[j] = float32(sums[j] / sums[dim])
		}
		out.Store(row, head*dim, joined)
	}
	return nil
}

package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// positions is how many keys and values the cache has of a sequence: of a
// layer with a window a ring of the last ones.
func (attention *attention) positions(writer *writer) int64 {
	all := writer.seq + writer.workload.NewTokens
	if attention.op.Window > 0 {
		return min(attention.op.Window, all)
	}
	return all
}

// cache are the keys and values of all sequences of the batch.
func (attention *attention) cache(writer *writer) (keys, values int) {
	name := writer.below(attention.layer)
	rows := writer.workload.Batch * attention.positions(writer)
	return writer.shared(&writer.regions.Cache, Tensor{Name: name + "keys", Class: classCache, DType: writer.dtype, Rows: rows, Columns: attention.kv, Parts: true}),
		writer.shared(&writer.regions.Cache, Tensor{Name: name + "values", Class: classCache, DType: writer.dtype, Rows: rows, Columns: attention.kv, Parts: true})
}

// remember puts keys and values into the cache: position i at i modulo its
// positions, of a prompt that is longer the last ones.
func (attention *attention) remember(writer *writer, k Operand) {
	keys, values := attention.cache(writer)
	dims := append([]Dim{size("sequences", writer.sequences), size("columns", attention.kv), size("positions", attention.positions(writer))}, writer.place0()...)
	kernel := writer.kernel("cache", dims, k, attention.v, both("keys", keys), both("values", values))
	rows := writer.count
	if writer.pass == passForward {
		rows = writer.sequences * min(writer.seq, attention.positions(writer))
	}
	kernel.Bytes = float64(4 * rows * attention.kv * bytesOf(writer.dtype))
}

// span is the number of keys of one block of attention's decode kernel; parts are joined in order.
const span = 512

// decode attends to the cache, in parts of span positions that are joined.
func (attention *attention) decode(writer *writer, q, k Operand) {
	attention.remember(writer, k)
	keys, values := attention.cache(writer)
	positions := attention.positions(writer)
	parts := (positions + span - 1) / span
	dims := append(attention.dims(writer), size("positions", positions), size("span", span))
	seen := min(positions, writer.seq+(writer.workload.NewTokens+1)/2)
	read := float64(2 * writer.sequences * seen * attention.kv * bytesOf(writer.dtype))
	if parts == 1 {
		writer.kernel("attention_decode", dims, q, in("keys", keys), in("values", values), out("y", attention.y)).Bytes = read
		return
	}
	// A head's part: its output, its largest score and its sum.
	part := writer.temporary("parts", modelgraph.F32, parts*writer.count, attention.op.Heads*(attention.op.HeadDim+2))
	writer.kernel("attention_decode", dims, q, in("keys", keys), in("values", values), out("parts", part)).Bytes = read
	writer.kernel("attention_join", []Dim{size("rows", writer.count), size("heads", attention.op.Heads), size("dim", attention.op.HeadDim), size("parts", parts)}, in("parts", part), out("y", attention.y))
}

package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// positions is how many keys and values the cache has of a sequence: of a
// layer with a window a ring of the last ones.
func (a *attention) positions(w *writer) int64 {
	all := w.seq + w.workload.NewTokens
	if a.op.Window > 0 {
		return min(a.op.Window, all)
	}
	return all
}

// cache are the keys and values of all sequences of the batch.
func (a *attention) cache(w *writer) (keys, values int) {
	name := w.below(a.layer)
	rows := w.workload.Batch * a.positions(w)
	return w.shared(&w.regions.Cache, Tensor{Name: name + "keys", Class: Cache, DType: w.dtype, Rows: rows, Columns: a.kv, Parts: true}),
		w.shared(&w.regions.Cache, Tensor{Name: name + "values", Class: Cache, DType: w.dtype, Rows: rows, Columns: a.kv, Parts: true})
}

// remember puts keys and values into the cache: position i at i modulo its
// positions, of a prompt that is longer the last ones.
func (a *attention) remember(w *writer, k Operand) {
	keys, values := a.cache(w)
	dims := append([]Dim{size("sequences", w.sequences), size("columns", a.kv), size("positions", a.positions(w))}, w.place0()...)
	kernel := w.kernel("cache", dims, k, a.v, both("keys", keys), both("values", values))
	rows := w.count
	if w.pass == Forward {
		rows = w.sequences * min(w.seq, a.positions(w))
	}
	kernel.Bytes = float64(4 * rows * a.kv * bytesOf(w.dtype))
}

// span is how many keys one block of attention's decode kernel goes through:
// the blocks' parts are joined in order.
const span = 512

// decode attends to the cache, in parts of span positions that are joined.
func (a *attention) decode(w *writer, q, k Operand) {
	a.remember(w, k)
	keys, values := a.cache(w)
	positions := a.positions(w)
	parts := (positions + span - 1) / span
	dims := append(a.dims(w), size("positions", positions), size("span", span))
	seen := min(positions, w.seq+(w.workload.NewTokens+1)/2)
	read := float64(2 * w.sequences * seen * a.kv * bytesOf(w.dtype))
	if parts == 1 {
		w.kernel("attention_decode", dims, q, in("keys", keys), in("values", values), out("y", a.y)).Bytes = read
		return
	}
	// A head's part: its output, its largest score and its sum.
	part := w.temporary("parts", modelgraph.F32, parts*w.count, a.op.Heads*(a.op.HeadDim+2))
	w.kernel("attention_decode", dims, q, in("keys", keys), in("values", values), out("parts", part)).Bytes = read
	w.kernel("attention_join", []Dim{size("rows", w.count), size("heads", a.op.Heads), size("dim", a.op.HeadDim), size("parts", parts)}, in("parts", part), out("y", a.y))
}

//go:build cuda && linux && cgo && amd64

package kernel

import (
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is the products of queries, keys and values, their rotation and the cache, with the
// attention that follows.
func (list *recognizer) attention(norm *Call, at int) ([]*operation, int) {
	op, products := list.several(norm, at)
	if len(products) != 3 || op.add != 0 {
		return nil, 0
	}
	rope, cache := list.call(at+3, "rope"), list.call(at+4, "cache")
	if rope == nil || cache == nil {
		return nil, 0
	}
	q, k, v := products[0].matrix("d"), products[1].matrix("d"), products[2].matrix("d")
	if *rope.matrix("q") != *q || *rope.matrix("k") != *k || *cache.matrix("k") != *k || *cache.matrix("v") != *v || !op.rotates(rope, cache, q, k) {
		return nil, 0
	}
	end := at + 5
	if norm != nil && list.read(norm.matrix("y"), end) || list.read(k, end) || list.read(v, end) {
		return nil, 0
	}
	ops := []*operation{op}
	if more, kernels := list.attends(end); more != nil {
		ops, end = append(ops, more...), end+kernels
	}
	return ops, end - list.at
}

// rotates makes the product of queries, keys and values one that rotates and fills the cache. It
// reports false if kernel fused cannot do that.
func (op *operation) rotates(rope, cache *Call, q, k *Matrix) bool {
	keys, values, dim := cache.matrix("keys"), cache.matrix("values"), rope.size("dim", 0)
	found, err := callFrequencies(rope)
	if err != nil || Moves(rope) || dim%16 != 0 || int64(len(found.inverse)) != dim/2 || q.Columns%dim != 0 || k.Columns%dim != 0 {
		return false
	}
	op.kind, op.dim, op.found = turnedKind, dim, &found
	op.past, op.positions = rope.size("past", -1), cache.size("positions", 0)
	op.parts[1].to, op.parts[1].apart = keys.Address, keys.Stride
	op.parts[2].to, op.parts[2].apart = values.Address, values.Stride
	return op.past >= 0 && op.rows == cache.size("sequences", 0)
}

// attends is attention to the cache, at a place of the list.
func (list *recognizer) attends(at int) ([]*operation, int) {
	call := list.call(at, "attention_decode")
	if call == nil {
		return nil, 0
	}
	q, keys, values := call.matrix("q"), call.matrix("keys"), call.matrix("values")
	if !wide(q, keys, values) || call.size("dim", 0)%8 != 0 || call.size("dim", 0) > widest || call.size("sequences", 0) != q.Rows || call.size("past", -1) < 0 {
		return nil, 0
	}
	op := &operation{
		kind: attendKind, rows: q.Rows, past: call.size("past", -1), positions: call.size("positions", 0),
		q: of(q), keys: of(keys), values: of(values), heads: call.size("heads", 0), kv: call.size("kv", 1), dim: call.size("dim", 0),
		span: call.size("span", 0), scale: call.number("scale", 0), cap: call.number("cap", 0),
	}
	op.divide()
	parts := call.matrix("parts")
	if parts == nil {
		op.y = of(call.matrix("y"))
		return []*operation{op}, 1
	}
	join := list.call(at+1, "attention_join")
	if join == nil || join.matrix("y").DType != modelgraph.BF16 {
		return nil, 0
	}
	if op.spans == 1 {
		op.y = of(join.matrix("y"))
		return []*operation{op}, 2
	}
	op.sums = of(parts)
	joined := *op
	joined.kind, joined.y = joinKind, of(join.matrix("y"))
	return []*operation{op, &joined}, 2
}

// divide sets how many positions a block of attention has. If sequences and groups of heads alone
// occupy most multiprocessors, a block has all positions and nothing is joined. A span is at least the
// plan's, because the plan has room for the sums of that many parts.
func (op *operation) divide() {
	const most = 128 // tasks, independent of the GPU's number of multiprocessors
	parts := max(1, most/(op.rows*op.groups()))
	op.span *= max(1, over(op.positions, parts*op.span))
	op.spans = over(op.positions, op.span)
}

func of(matrix *Matrix) span { return span{matrix.Address, matrix.Stride} }

// wide reports whether matrices are of bf16, with rows at multiples of 16 bytes.
func wide(all ...*Matrix) bool {
	for _, matrix := range all {
		if matrix == nil || matrix.DType != modelgraph.BF16 || matrix.Address%16 != 0 || matrix.Stride%8 != 0 {
			return false
		}
	}
	return true
}

func addressOfValue(count int64) driver.Address { return driver.Address(2 * count) }

func addressOfRow(of *weights, row int64) driver.Address { return addressOfValue(row * of.stride) }

// overlap reports whether two matrices may have a byte in common.
func overlap(one, two *Matrix) bool {
	end := func(matrix *Matrix) driver.Address {
		return matrix.Address + driver.Address(((matrix.Rows-1)*matrix.Stride+matrix.Columns)*matrix.DType.Bits()/8)
	}
	return one.Address < end(two) && two.Address < end(one)
}

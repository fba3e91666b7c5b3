//go:build cuda && linux && cgo && amd64

package kernel

import "github.com/devmap-dev/devmap/executor/cuda/internal/driver"

// The kinds of operations, as fused.h has them.
const (
	plainKind = iota
	gatedKind
	turnedKind
	attendKind
	joinKind
	pickKind
)

// span is a matrix as kernels take it: its address, and how many values its rows are apart.
type span struct {
	at     driver.Address
	stride int64
}

// weights is Part of fused.h: a weight with its rows, and where its columns of the result go.
type weights struct {
	weight, bias, to    driver.Address
	stride, apart, rows int64
}

// operation is Op of fused.h, field by field.
type operation struct {
	kind, tiles, first                                                    int64
	rows, inner, xStride, addStride, staged, gemma, activation, positions int64
	epsilon                                                               float64
	x, norm, add                                                          driver.Address
	parts                                                                 [3]weights
	past                                                                  int64
	turn                                                                  driver.Address
	q, keys, values, y, sums                                              span
	heads, kv, dim, span, spans                                           int64
	scale, cap, factor                                                    float64
	ids                                                                   driver.Address
	said, foundAt                                                         driver.Address
	area, _                                                               int64

	// found are the frequencies that turn points to, once the table has an address.
	found *frequencies
	// picks: the largest results' columns are wanted, so that sums gets an address in the table.
	picks bool
}

// operationBytes is the size of an Op: 58 numbers of eight bytes.
const operationBytes = 58 * 8

func over16(value int64) int64 { return over(value, 16) }

// count sets how many tiles the operation has.
func (op *operation) count() {
	switch op.kind {
	case plainKind, turnedKind:
		op.tiles = over16(op.parts[0].rows) + over16(op.parts[1].rows) + over16(op.parts[2].rows)
	case gatedKind:
		op.tiles = over(op.parts[0].rows, 8)
	case attendKind:
		op.tiles = op.spans * op.rows * op.groups()
	}
}

// groups is how many groups of up to eight heads attention has, each with keys and values in common.
func (op *operation) groups() int64 { return op.kv * over(op.heads/op.kv, 8) }

// stretch is the distance of x's rows in shared memory, as in stage.h.
func (op *operation) stretch() int64 { return over(2*op.inner, 128)*128 + 64 }

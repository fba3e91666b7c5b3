//go:build cuda && linux && cgo && amd64

package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// TestCapacity: if many wide rows leave no room for two slots of weights, a step runs as it is.
func TestCapacity(t *testing.T) {
	t.Parallel()
	kernels := &Kernels{processors: 132, hopper: true}
	for _, test := range []struct{ rows, inner, norm, slots int64 }{
		{1, 2048, 1, 6}, {16, 2048, 1, 4}, {16, 4096, 1, 2}, {16, 5120, 1, 1}, {16, 8192, 1, -2}, {16, 8192, 0, 4},
	} {
		op := &operation{rows: test.rows, inner: test.inner, norm: driver.Address(test.norm)}
		if slots := kernels.share([]*operation{op}); slots != test.slots {
			t.Errorf("%+v: %d slots", test, slots)
		}
	}
	bench := newBench(t, "x=16x5120 n=16x5120 wn=1x5120 wq=64x5120 q=16x64")
	as := make([]Launch, 2)
	got, _, err := Fuse(kernels, []*Call{bench.call(normed), bench.call(queries)}, as, new(Ending))
	if err != nil || len(got) != len(as) || &got[0] != &as[0] {
		t.Errorf("%d launches, %v", len(got), err)
	}
}

// TestPack: the table has the launch's number, the operations, room for the largest results that a
// product shares with its arg max, and then the frequencies.
func TestPack(t *testing.T) {
	t.Parallel()
	const at, blocks = driver.Address(0x1000), 3
	turned := &operation{rows: 2, kind: turnedKind, found: &frequencies{inverse: []float32{0.5, 0.25}, factor: 2}}
	product, pick := &operation{rows: 2, picks: true}, &operation{rows: 2, kind: pickKind, picks: true}
	data := pack([]*operation{turned, product, pick}, at, blocks)
	largest := headBytes + 3*operationBytes
	turn := largest + 2*blocks*8
	if want := (span{at + driver.Address(largest), 2 * blocks}); product.sums != want || pick.sums != want {
		t.Errorf("%+v, %+v, want %+v", product.sums, pick.sums, want)
	}
	if turned.turn != at+driver.Address(turn) || turned.factor != 2 || turned.sums != (span{}) {
		t.Errorf("%+v", turned)
	}
	if binary.LittleEndian.Uint32(data[4:]) != 1 || math.Float32frombits(binary.LittleEndian.Uint32(data[turn+4:])) != 0.25 || len(data) != (turn+8+15)/16*16 {
		t.Errorf("%d bytes: %x, %x", len(data), data[:headBytes], data[turn:])
	}
}

// TestFuse: a launch has operations of as many rows, in the order of their kernels.
func TestFuse(t *testing.T) {
	t.Parallel()
	bench := newBench(t, "x=1x64 q=1x64 p=1x64 m=2x64 n=2x64 w=64x64")
	var calls []*Call
	var launches []Launch
	var order []string
	for i, line := range []string{"gemm form=nt : a=x b=w >d=q", "gemm form=nt : a=q b=w >d=p", "gemm form=nt : a=m b=w >d=n", "copy : x=m >y=n", "gemm form=nt : a=m b=w >d=n"} {
		calls = append(calls, bench.call(line))
		launches = append(launches, func(*schedule.Args) error { order = append(order, fmt.Sprint("kernel ", i)); return nil })
	}
	fused, err := fuse(calls, launches, func(ops []*operation, last bool) (Launch, error) {
		said := fmt.Sprintf("%d of %d rows, last: %v", len(ops), ops[0].rows, last)
		return func(*schedule.Args) error { order = append(order, said); return nil }, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, launch := range fused {
		if err := launch(nil); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"2 of 1 rows, last: false", "1 of 2 rows, last: false", "kernel 3", "1 of 2 rows, last: true"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

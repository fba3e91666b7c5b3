//go:build cuda && linux && cgo && amd64

package kernel

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/drivertest"
)

func TestMain(m *testing.M) {
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

// TestSetPlace: the position is written, unless the launch before writes the same one.
func TestSetPlace(t *testing.T) {
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	devices, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	context, err := devices[0].Retain()
	if err == nil {
		err = context.Bind()
	}
	if err != nil {
		t.Fatal(err)
	}
	stream, err := driver.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := driver.Pin(4)
	if err != nil {
		t.Fatal(err)
	}
	granule, err := devices[0].Granule()
	if err != nil {
		t.Fatal(err)
	}
	arena, err := devices[0].Map(granule)
	if err != nil {
		t.Fatal(err)
	}
	kernels := New(false, 1)
	kernels.placed = arena.Address
	const other = 1 << 30 // the word's value before each call
	for _, test := range []struct {
		advanced, past int64
		want           uint32
	}{{0, 5, 5}, {6, 6, other}, {6, 7, 7}, {0, 6, 6}, {0, 0, 0}} {
		if test.advanced > 0 {
			kernels.Advanced(test.advanced)
		}
		if err := errors.Join(stream.FillWord(arena.Address, other), kernels.SetPlace(stream, test.past), stream.Down(pinned.Data, arena.Address), stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(pinned.Data); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
	if err := errors.Join(pinned.Free(), stream.Destroy(), arena.Release(), context.Release()); err != nil {
		t.Error(err)
	}
}

// TestHopper: kernels for Hopper are for capability 9.0 alone, and for drivers that take their PTX.
func TestHopper(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		capability, version int
		want                bool
	}{{90, 12010, true}, {90, 13000, true}, {90, 12000, false}, {90, 11080, false}, {80, 12010, false}, {100, 13000, false}} {
		if got := Hopper(test.capability, test.version); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestEnding: an arg max takes over the search of its logits alone.
func TestEnding(t *testing.T) {
	t.Parallel()
	bench := newBench(t, sizes)
	logits, ids := bench.matrices["l"], bench.matrices["ids"]
	logits.Columns = 500
	bench.matrices["l"] = logits
	head := []string{"gemm form=nt : a=x b=wh >d=l", "argmax : x=l >y=ids"}
	other := bench.matrices["x"]
	for _, test := range []struct {
		name  string
		lines []string
		areas []Area
		takes bool
	}{
		{"the logits", head, []Area{{Matrix: other}, {Matrix: logits, Looked: true}}, true},
		{"another area too", head, []Area{{Matrix: other, Looked: true}, {Matrix: logits, Looked: true}}, false},
		{"another area", head, []Area{{Matrix: other, Looked: true}, {Matrix: logits}}, false},
		{"no area", head, nil, false},
		{"no arg max", head[:1], []Area{{Matrix: logits, Looked: true}}, false},
		{"more of the logits", head, []Area{{Matrix: Matrix{logits.Address, logits.DType, 2, logits.Columns, logits.Stride}, Looked: true}}, false},
	} {
		_, ops := bench.kinds(test.lines)
		ending, last := &Ending{Areas: test.areas, Found: 1, Said: 2}, ops[len(ops)-1]
		if takes := ending.takes(last); takes != test.takes {
			t.Errorf("%s: %v", test.name, takes)
		}
		if test.takes != (last.foundAt == 1 && last.said == 2 && last.area == 1 && ending.IDs == ids.Address) {
			t.Errorf("%s: %+v, %+v", test.name, last, ending)
		}
	}
}

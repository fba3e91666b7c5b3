//go:build cuda && linux && cgo && amd64

package kernel

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestGPUFinite: the kernel finds a single NaN or infinity at any place, in rows of any
// width at any address, with NaN around the areas. It finds nothing if all values are
// finite, and of several it reports that of the first area. The test prints the rate of
// the search.
func TestGPUFinite(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Skip("DEVMAP_TEST_GPU is not set")
	}
	server := newServer(t)
	word, err := driver.Pin(8)
	server.must(err)
	random := rand.New(rand.NewPCG(5, 6))
	for trial := range 400 {
		server.finds(random, word, trial)
	}
	server.watches(word)
	for _, size := range []int64{1 << 12, 1 << 20, 1 << 24, 1 << 29} {
		server.fill(2 * size)
		launch, err := Finite(server.kernels, []Area{{Matrix: Matrix{server.arena.Address, modelgraph.BF16, 1, size, size}, Looked: true}}, word.Address())
		server.must(err)
		for range 3 {
			server.must(launch(&Step{Queue: server.stream}))
		}
		server.must(server.stream.Synchronize())
		const times = 50
		begin := time.Now()
		server.must(server.stream.Record(server.ends[0]))
		for range times {
			server.must(launch(&Step{Queue: server.stream}))
		}
		issued := time.Since(begin) / times
		server.must(server.stream.Record(server.ends[1]))
		server.must(server.stream.Synchronize())
		took, err := server.ends[1].Since(server.ends[0])
		server.must(err)
		t.Logf("%d bytes in %v, %.0f GB/s; issued in %v", 2*size, took/times, float64(2*size)*times/took.Seconds()/1e9, issued)
	}
}

// watches looks through a watched area of NaN, which is read once the optimizers' kernels set odd.
func (server *server) watches(word *driver.Pinned) {
	data := server.pattern.Data[:64]
	for i := range data {
		data[i] = 0xff
	}
	server.must(server.stream.Up(server.arena.Address, data))
	areas := []Area{{Matrix: Matrix{server.arena.Address, modelgraph.BF16, 4, 8, 8}, Looked: true, Watched: true}}
	launch, err := Finite(server.kernels, areas, word.Address())
	server.must(err)
	at, _, err := server.kernels.global("update", "odd")
	server.must(err)
	for _, set := range []uint32{0, 1, 0} {
		clear(word.Data)
		server.must(server.stream.FillWord(at, set))
		server.must(launch(&Step{Queue: server.stream}))
		server.must(server.stream.Synchronize())
		if got := binary.LittleEndian.Uint64(word.Data); got != uint64(set) {
			server.t.Fatalf("odd %d: %d is found", set, got)
		}
	}
}

// finds lays areas into NaN and looks through them, with nothing and with something.
func (server *server) finds(random *rand.Rand, word *driver.Pinned, trial int) {
	const size = 1 << 22
	at := server.arena.Address
	data := server.pattern.Data[:size]
	for i := range data {
		data[i] = 0xff
	}
	clear(word.Data)
	var areas []Area
	type place struct{ area, at, size int64 }
	var places []place
	next := int64(0)
	for i := range 1 + random.Int64N(MostAreas) {
		dtype := []modelgraph.DType{modelgraph.BF16, modelgraph.F32}[random.IntN(2)]
		size := dtype.Bits() / 8
		rows, columns := 1+random.Int64N(20), 1+random.Int64N(90)
		if random.IntN(4) == 0 {
			rows, columns = 1+random.Int64N(3), 1+random.Int64N(9000)
		}
		stride := columns
		if random.IntN(2) == 0 {
			stride += random.Int64N(20)
		}
		next += size * random.Int64N(9)
		areas = append(areas, Area{Matrix: Matrix{at + driver.Address(next), dtype, rows, columns, stride}, Looked: i == 0 || random.IntN(2) == 0})
		for row := range rows {
			for column := range columns {
				place := place{i, next + (row*stride+column)*size, size}
				value := random.Uint32() & 0xff7fffff // no exponent is all ones
				copy(data[place.at:place.at+size], binary.LittleEndian.AppendUint32(nil, value)[4-size:])
				if random.IntN(200) == 0 || row == rows-1 && column == columns-1 {
					places = append(places, place)
				}
			}
		}
		next += rows*stride*size + 64
		next = (next + 15) &^ 15
		if next > size*3/4 {
			break
		}
	}
	look := func() uint64 {
		server.must(server.stream.Up(at, data))
		launch, err := Finite(server.kernels, areas, word.Address())
		server.must(err)
		server.must(launch(&Step{Queue: server.stream}))
		server.must(server.stream.Synchronize())
		return binary.LittleEndian.Uint64(word.Data)
	}
	if got := look(); got != 0 {
		server.t.Fatalf("trial %d: %d is found, and there is nothing", trial, got)
	}
	bad := places[random.IntN(len(places))]
	kind := random.Uint64N(3)
	value := []uint32{0x7fc00000 + random.Uint32N(2)<<31, 0x7f800000, 0xff800000}[kind]
	copy(data[bad.at:bad.at+bad.size], binary.LittleEndian.AppendUint32(nil, value)[4-bad.size:])
	want := uint64(4*bad.area) + kind + 1
	if !areas[bad.area].Looked {
		if got := look(); got != 0 {
			server.t.Fatalf("trial %d: %d is found where nobody looks", trial, got)
		}
		planted := 0 // in one that is looked at there is something too, if it can be behind
		for i := bad.area + 1; i < int64(len(areas)); i++ {
			if areas[i].Looked {
				planted = int(i)
			}
		}
		copy(data[areas[planted].Address-at:], binary.LittleEndian.AppendUint32(nil, 0x7f800000)[4-areas[planted].DType.Bits()/8:])
		want = min(want, uint64(4*planted)+2)
	}
	if got := look(); got != want {
		server.t.Fatalf("trial %d: %d is found, want %d of %+v", trial, got, want, areas)
	}
}

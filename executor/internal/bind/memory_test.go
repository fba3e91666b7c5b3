package bind_test

import (
	"math"

	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// memory is an arena that knows what each byte is of: numbers in float64, each
// at its first byte, of as many bytes as its type has. A number that another
// has been written over, in part or as another type, is gone.
type memory struct {
	values []float64
	sizes  []uint8 // of the number that begins here; 0: none
}

func newMemory(bytes int64) *memory {
	return &memory{make([]float64, bytes), make([]uint8, bytes)}
}

// put writes a number; what it covers of others ends them.
func (memory *memory) put(offset, size int64, value float64) {
	memory.end(offset, size)
	memory.values[offset], memory.sizes[offset] = value, uint8(size)
}

// end leaves nothing whole of bytes [offset, offset+size).
func (memory *memory) end(offset, size int64) {
	for at := max(0, offset-3); at < offset+size; at++ {
		if at >= offset || at+int64(memory.sizes[at]) > offset {
			memory.sizes[at] = 0
		}
	}
}

// get returns the number of a size at an offset, NaN if there is none.
func (memory *memory) get(offset, size int64) float64 {
	if memory.sizes[offset] != uint8(size) {
		return math.NaN()
	}
	return memory.values[offset]
}

// move copies bytes, between arenas too.
func (memory *memory) move(to int64, from *memory, first, bytes int64) {
	memory.end(to, bytes)
	copy(memory.values[to:to+bytes], from.values[first:first+bytes])
	copy(memory.sizes[to:to+bytes], from.sizes[first:first+bytes])
}

func size(area *bind.Area) int64 { return area.DType.Bits() / 8 }

// load are the values of an area.
func (memory *memory) load(area *bind.Area) []float64 {
	out, width, number := make([]float64, area.Rows*area.Columns), size(area), 0
	for row := range area.Rows {
		at := area.Offset + row*area.Stride*width
		for range area.Columns {
			out[number] = memory.get(at, width)
			number, at = number+1, at+width
		}
	}
	return out
}

func (memory *memory) store(area *bind.Area, values []float64) {
	width, number := size(area), 0
	for row := range area.Rows {
		at := area.Offset + row*area.Stride*width
		for range area.Columns {
			memory.put(at, width, values[number])
			number, at = number+1, at+width
		}
	}
}

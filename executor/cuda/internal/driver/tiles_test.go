//go:build cuda && linux && cgo && amd64

package driver

import (
	"encoding/binary"
	"slices"
	"testing"
)

// TestTiles: the driver gets a matrix's sizes and strides in bytes, and its description comes into the
// place that was reserved.
func TestTiles(t *testing.T) {
	if err := Open(); err != nil {
		t.Fatal(err)
	}
	arguments := new(Arguments)
	first, place := arguments.ReserveTiles(), arguments.ReserveTiles()
	arguments.Uint32(7).Uint64(9)
	if first != 0 || place != 128 || !slices.Equal(arguments.starts, []uint32{0, 128, 256, 264}) {
		t.Fatalf("%d and %d are the places, arguments begin at %v", first, place, arguments.starts)
	}
	if err := arguments.Tiles(place, &Tiles{At: 0x1000, Width: 64, Heads: 4, Rows: 70, Sequences: 2, Stride: 512, Box: 128}); err != nil {
		t.Fatal(err)
	}
	want := []uint64{0x1000, 64, 70, 4, 2, 1024, 128, 1024 * 70, 64, 128, 1, 1, 1, 1, 1, 1}
	for i, want := range want {
		if got := binary.LittleEndian.Uint64(arguments.data[place+8*i:]); got != want {
			t.Errorf("number %d of the description is %d, want %d", i, got, want)
		}
	}
	if binary.LittleEndian.Uint64(arguments.data[120:]) != 0 || binary.LittleEndian.Uint32(arguments.data[256:]) != 7 {
		t.Error("the arguments around it are others")
	}
	if err := arguments.Tiles(place, &Tiles{At: 0x1008, Width: 64, Heads: 4, Rows: 70, Sequences: 2, Stride: 512, Box: 128}); err == nil {
		t.Error("an odd address is taken")
	}
}

//go:build cuda && linux && cgo && amd64

package driver

import (
	"bytes"
	"errors"
	"testing"
)

// The capture runs nothing. Each run of the graph does what its stream got during the capture, with
// the bytes that the arena has by then.
func TestGraph(t *testing.T) {
	arena, stream, pinned := streamed(t)
	if err := errors.Join(stream.Fill(arena.Address, 1, 32), stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	graph, err := stream.Capture(func() error {
		return errors.Join(stream.Fill(arena.Address+8, 9, 4), stream.Copy(arena.Address+16, arena.Address, 8))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		word uint32
		runs bool
		want []byte
	}{
		{0x03030303, false, []byte{3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}},
		{0x05050505, true, []byte{5, 5, 5, 5, 1, 1, 1, 1, 9, 9, 9, 9, 1, 1, 1, 1, 5, 5, 5, 5}},
		{0x06060606, true, []byte{6, 6, 6, 6, 1, 1, 1, 1, 9, 9, 9, 9, 1, 1, 1, 1, 6, 6, 6, 6}},
	} {
		err := stream.FillWord(arena.Address, test.word)
		if err == nil && test.runs {
			err = stream.Run(graph)
		}
		if err := errors.Join(err, stream.Down(pinned.Data, arena.Address), stream.Synchronize()); err != nil {
			t.Fatal(err)
		}
		if got := pinned.Data[:len(test.want)]; !bytes.Equal(got, test.want) {
			t.Errorf("%x: %v, want %v", test.word, got, test.want)
		}
	}
	refused := errors.New("refused")
	if _, err := stream.Capture(func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("a capture that fails: %v", err)
	}
	if err := errors.Join(stream.Fill(arena.Address, 2, 8), stream.Synchronize(), graph.Destroy(), pinned.Free(), stream.Destroy(), arena.Release()); err != nil {
		t.Error(err)
	}
}

//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/weights"
)

// slowSums are sums as kernel checksum is said to make them.
func slowSums(data []byte) (all checksum.Sums) {
	for i := range data {
		word := uint64(data[i]) << (i % 8 * 8)
		all.Plain += word
		all.Placed += uint64(i/8+1) * word
	}
	return all
}

// FuzzSums: what is read in whatever steps, to wherever, sums up to what a GPU finds
// in the same words.
func FuzzSums(f *testing.F) {
	f.Add([]byte("every word of it counts, and so does its place in the row of words"), uint16(3), uint16(7), uint16(40))
	f.Add(bytes.Repeat([]byte{0xFF}, 200), uint16(0), uint16(8), uint16(199))
	f.Fuzz(func(t *testing.T, data []byte, from, step, offset uint16) {
		size, skip := int64(len(data)), int(offset%wordSize)
		if size == 0 {
			return
		}
		piece := &piece{from: int64(from) % size, to: size}
		piece.Pour = &executor.Pour{Offset: int64(offset) + 8*size - piece.from, Values: weights.Range{Step: int64(step) + 1, Read: func(into []byte, from int64) error {
			copy(into, data[from:])
			return nil
		}}}
		poured := &poured{piece: piece, part: &part{data: bytes.Repeat([]byte{0xFF}, len(data)+wordSize)}}
		if err := poured.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := slowSums(append(make([]byte, skip), data[piece.from:]...)); poured.sums != want {
			t.Errorf("%v, want %v", poured.sums, want)
		}
	})
}

// target is what values are poured into: the bytes that arenas should have.
type target struct {
	machine *machine
	want    [][]byte
	pours   []executor.Pour
	bytes   int64
}

// targetOf are values of odd sizes at odd places of two devices.
func targetOf(t *testing.T, machine *machine) *target {
	t.Helper()
	target := &target{machine: machine}
	generator := rand.New(rand.NewPCG(1, 2))
	for number, device := range machine.devices {
		want := bytes.Repeat([]byte{executor.Poison}, int(device.plan.Arena))
		for at := int64(3); ; at += 2 {
			size := []int64{1, 7, 8, 4097, 64 << 10, 64<<10 + 1, 200_001, 1_000_003}[generator.IntN(8)]
			if at+size > device.plan.Arena {
				break
			}
			values := make([]byte, size)
			for i := range values {
				values[i] = byte(generator.Uint32())
			}
			copy(want[at:], values)
			target.pours = append(target.pours, executor.Pour{Device: number, Offset: at, Values: weights.Range{
				Bytes: size, Step: []int64{3, 4096, 100_000}[generator.IntN(3)] + 4093, Place: fmt.Sprint("values ", len(target.pours)),
				Read: func(into []byte, from int64) error {
					copy(into, values[from:from+int64(len(into))])
					return nil
				},
			}})
			at, target.bytes = at+size, target.bytes+size
		}
		target.want = append(target.want, want)
	}
	return target
}

// same holds the arenas to what they should have, and the ring to having all parts.
func (target *target) same(t *testing.T) {
	t.Helper()
	for i, got := range contents(t, target.machine) {
		if !bytes.Equal(got, target.want[i]) {
			t.Errorf("device %d has other bytes", i)
		}
	}
	target.whole(t)
}

func (target *target) whole(t *testing.T) {
	t.Helper()
	if ring := target.machine.ring; len(ring.free) != ring.count {
		t.Errorf("%d of the ring's %d parts are free", len(ring.free), ring.count)
	}
}

const twoArenas = "device 0 arena 4000000 budget 4000000\ndevice 1 arena 3000000 budget 3000000\n"

// What is poured is in its place, whatever its size and its place, and nothing else
// changed; on one GPU and on two, in large pages and without.
func TestPour(t *testing.T) {
	for _, gpus := range [][]int{{0, 0}, {0, 1}} {
		for _, register := range []string{"1", "0"} {
			t.Run(fmt.Sprint(gpus, register), func(t *testing.T) {
				set(t, "FAKE_CUDA_REGISTER", register)
				target := targetOf(t, opened(t, made(t, Options{Devices: gpus}), parsed(t, twoArenas)))
				var told int64
				if err := target.machine.Pour(context.Background(), target.pours, func(bytes int64) { told += bytes }); err != nil {
					t.Fatal(err)
				}
				if told != target.bytes {
					t.Errorf("%d bytes were told of, want %d", told, target.bytes)
				}
				target.same(t)
			})
		}
	}
}

// Whatever ends it early ends all of it with its error, and what is poured then is
// as if there had been nothing.
func TestPourThatEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, want := range map[string]error{"read": broken, "cancelled": context.Canceled} {
		for _, at := range []int64{1, 5, 300} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				target := targetOf(t, opened(t, made(t, Options{Devices: []int{0, 1}}), parsed(t, twoArenas)))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				var reads atomic.Int64
				pours := append([]executor.Pour(nil), target.pours...)
				for i := range pours {
					read := pours[i].Values.Read
					pours[i].Values.Read = func(into []byte, from int64) error {
						if reads.Add(1) != at {
							return read(into, from)
						}
						if name == "read" {
							return broken
						}
						cancel()
						return nil
					}
				}
				if err := target.machine.Pour(ctx, pours, func(int64) {}); !errors.Is(err, want) {
					t.Errorf("it ends with %v", err)
				}
				target.whole(t)
				if err := target.machine.Pour(context.Background(), target.pours, func(int64) {}); err != nil {
					t.Fatal(err)
				}
				target.same(t)
			})
		}
	}
}

// A byte that becomes another one on its way is found, and the error says where.
func TestPourOfAWrongByte(t *testing.T) {
	for _, copies := range []string{"1", "2", "9"} {
		t.Run(copies, func(t *testing.T) {
			target := targetOf(t, opened(t, made(t, Options{Devices: []int{0, 0}}), parsed(t, twoArenas)))
			set(t, "FAKE_CUDA_FLIP", copies)
			err := target.machine.Pour(context.Background(), target.pours, func(int64) {})
			if err == nil || !strings.HasPrefix(err.Error(), "values ") || !strings.Contains(err.Error(), "on GPU 0 (Fake 0) as they were read: their checksum is ") {
				t.Error(err)
			}
			target.whole(t)
			set(t, "FAKE_CUDA_FLIP", "")
			if err := target.machine.Pour(context.Background(), target.pours, func(int64) {}); err != nil {
				t.Error(err)
			}
			target.same(t)
		})
	}
}

// What a GPU does not do in time is given up, and the GPU with it.
func TestPourThatHangs(t *testing.T) {
	of := strings.Replace(twoArenas, "budget 4000000", "budget 4000000\nroutine a a\nbuffer 0 out 0 +256 stream\n0.0 compute forward a mb0 >out", 1)
	target := targetOf(t, opened(t, made(t, Options{Devices: []int{0, 0}, Patience: 50 * time.Millisecond}), parsed(t, of)))
	var flag *driver.Pinned
	device := target.machine.devices[0]
	if err := device.do(func() (err error) {
		if flag, err = driver.Pin(4); err != nil {
			return err
		}
		clear(flag.Data)
		one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		return device.kernels.Launch(device.streams[0], "hang", one, func(arguments *driver.Arguments) { arguments.Address(flag.Address()) })
	}); err != nil {
		t.Fatal(err)
	}
	var hang *HangError
	if err := target.machine.Pour(context.Background(), target.pours, func(int64) {}); !errors.As(err, &hang) || !strings.Contains(hang.Stand, "a copy of values ") {
		t.Errorf("%v", err)
	}
	if err := target.machine.Read(0, 0, make([]byte, 8)); err == nil {
		t.Error("the GPU is at something that does not end, and is asked for more")
	}
	binary.LittleEndian.PutUint32(flag.Data, 1) // it is let go
	target.machine.hung = false
	for len(target.machine.ring.free) < target.machine.ring.count {
		target.machine.ring.free <- nil
	}
	if err := device.do(func() error { return errors.Join(device.streams[0].Synchronize(), flag.Free()) }); err != nil {
		t.Error(err)
	}
}

// What would lie beside an arena is refused before anything is read.
func TestPourBesideAnArena(t *testing.T) {
	machine := opened(t, made(t, Options{Devices: []int{0, 0}}), parsed(t, twoArenas))
	for _, pour := range []executor.Pour{
		{Device: 2, Values: weights.Range{Bytes: 8}}, {Device: -1, Values: weights.Range{Bytes: 8}},
		{Device: 1, Offset: 2999993, Values: weights.Range{Bytes: 8}}, {Offset: -1, Values: weights.Range{Bytes: 8}},
	} {
		pour.Values.Step = 1 << 20
		pour.Values.Read = func([]byte, int64) error {
			t.Error("it was read")
			return nil
		}
		if err := machine.Pour(context.Background(), []executor.Pour{pour}, func(int64) {}); err == nil || !strings.HasPrefix(err.Error(), "device ") {
			t.Errorf("%+v: %v", pour, err)
		}
	}
	if err := machine.Pour(context.Background(), nil, func(int64) {}); err != nil {
		t.Error(err)
	}
}

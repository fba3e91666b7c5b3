//go:build cuda && linux && cgo && amd64

package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/drivertest"
	"github.com/devmap-dev/devmap/executor/weights"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("FAKE_CUDA_GPUS", "2"); err != nil {
		panic(err)
	}
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

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
		size := int64(len(data))
		if size == 0 {
			return
		}
		read := func(into []byte, from int64) error {
			copy(into, data[from:])
			return nil
		}
		values := weights.Range{Bytes: size, Step: int64(step) + 1, Read: read}
		load := &Load{End: &End{Name: "arena"}, Offset: int64(offset), Values: values}
		ring := New(Shape{Parts: 3, Size: 8 * (1 + int(from)%100), Share: 8, Behind: 2})
		sums := make(map[*stretch]bool)
		for _, piece := range ring.cut(load) {
			part := &part{data: bytes.Repeat([]byte{0xFF}, ring.size+wordSize)}
			middle := piece.from + int64(step)%(piece.to-piece.from+1)
			for _, share := range [][2]int64{{middle, piece.to}, {piece.from, middle}} {
				if err := piece.read(t.Context(), part, share[0], share[1]); err != nil {
					t.Fatal(err)
				}
			}
			sums[piece.stretch] = true
		}
		whole := int64(0)
		for stretch := range sums {
			whole += stretch.to - stretch.from
			skip := (load.Offset + stretch.from) % wordSize
			if err := stretch.judge(slowSums(append(make([]byte, skip), data[stretch.from:stretch.to]...))); err != nil {
				t.Error(err)
			}
		}
		if whole != size {
			t.Errorf("stretches of %d bytes, want %d", whole, size)
		}
	})
}

// rig is a ring with ends on its GPU, and what is poured there: arenas should have want.
type rig struct {
	ring  *Ring
	ends  []*End
	loads []Load
	want  [][]byte
	bytes int64
}

// rigOf is for values of odd sizes at odd places of so many arenas. When the test ends
// nothing of it is held.
func rigOf(t *testing.T, arenas int) *rig {
	t.Helper()
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	devices, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	rig := &rig{ring: New(Shape{Parts: 4, Size: 64 << 10, Share: 32 << 10, Behind: 1})}
	generator := rand.New(rand.NewPCG(1, 2))
	t.Cleanup(func() {
		if held := driver.Held(); held != "" {
			t.Errorf("the process still holds %s", held)
		}
	})
	for i := range arenas {
		rig.end(t, &devices[0], int64(i))
		rig.draw(generator, int64(4-i)<<20)
	}
	return rig
}

// end makes one, with its arena of poison.
func (rig *rig) end(t *testing.T, gpu *driver.Device, number int64) {
	t.Helper()
	context, err := gpu.Retain()
	if err != nil {
		t.Fatal(err)
	}
	kernels := kernel.New(false)
	end := &End{Name: fmt.Sprint("arena ", number), Ring: rig.ring, Context: context}
	var arena *driver.Arena
	if err := context.Within(func() (err error) {
		if arena, err = gpu.Map(4 << 20); err != nil {
			return err
		}
		end.Arena = arena.Address
		if end.Stream, err = driver.NewStream(); err != nil {
			return err
		}
		if end.Beside, err = driver.NewStream(); err != nil {
			return err
		}
		if err := end.Stream.Fill(arena.Address, 0xFF, arena.Bytes); err != nil {
			return err
		}
		return end.Prime(kernels)
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := context.Within(func() error {
			all := []error{end.Close(), end.Stream.Destroy(), end.Beside.Destroy(), kernels.Unload()}
			if number == 0 { // it is the last to end
				all = append(all, rig.ring.Close())
			}
			return errors.Join(append(all, arena.Release())...)
		})
		if err := errors.Join(err, context.Release()); err != nil {
			t.Error(err)
		}
	})
	rig.ends = append(rig.ends, end)
}

// draw draws values for the last end.
func (rig *rig) draw(generator *rand.Rand, bytes int64) {
	want := make([]byte, 4<<20)
	for i := range want {
		want[i] = 0xFF
	}
	for at := int64(3); ; at += 2 {
		size := []int64{1, 7, 8, 4097, 64 << 10, 64<<10 + 1, 200_001, 1_000_003}[generator.IntN(8)]
		if at+size > bytes {
			break
		}
		values := want[at : at+size]
		for i := range values {
			values[i] = byte(generator.Uint32())
		}
		rig.loads = append(rig.loads, Load{rig.ends[len(rig.ends)-1], at, weights.Range{
			Bytes: size, Step: []int64{3, 4096, 100_000}[generator.IntN(3)] + 4093, Place: fmt.Sprint("values ", len(rig.loads)),
			Read: func(into []byte, from int64) error {
				copy(into, values[from:from+int64(len(into))])
				return nil
			},
		}})
		at, rig.bytes = at+size, rig.bytes+size
	}
	rig.want = append(rig.want, want)
}

func (rig *rig) pour(ctx context.Context, loads []Load) (told int64, err error) {
	err = rig.ring.Pour(ctx, loads, Hands{3, true}, time.Minute, func(bytes int64) { told += bytes })
	return told, err
}

// same holds the arenas to what they should have, and the ring to having all parts.
func (rig *rig) same(t *testing.T) {
	t.Helper()
	for i, end := range rig.ends {
		got := make([]byte, len(rig.want[i]))
		if err := end.Context.Within(func() error { return end.Read(0, got) }); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got, rig.want[i]) {
			t.Errorf("arena %d has other bytes", i)
		}
	}
	rig.whole(t)
}

func (rig *rig) whole(t *testing.T) {
	t.Helper()
	if len(rig.ring.free) != rig.ring.count {
		t.Errorf("%d of the ring's %d parts are free", len(rig.ring.free), rig.ring.count)
	}
}

// What is poured is in its place, whatever its size and its place, and nothing else
// changed; in one arena and in two, in large pages and without, by hands that wait awake
// and by more than there are processors.
func TestPour(t *testing.T) {
	for _, arenas := range []int{1, 2} {
		for _, register := range []string{"1", "0"} {
			t.Run(fmt.Sprint(arenas, register), func(t *testing.T) {
				t.Setenv("FAKE_CUDA_REGISTER", register)
				rig := rigOf(t, arenas)
				if made := len(rig.ring.free); made != 1 {
					t.Errorf("before anything is poured the ring has %d parts", made)
				}
				for _, crowded := range []bool{false, true} {
					told := int64(0)
					err := rig.ring.Pour(t.Context(), rig.loads, Hands{3, crowded}, time.Minute, func(bytes int64) { told += bytes })
					if err != nil || told != rig.bytes {
						t.Errorf("%d bytes were told of, want %d; %v", told, rig.bytes, err)
					}
				}
				rig.same(t)
				if told, err := rig.pour(t.Context(), nil); told != 0 || err != nil {
					t.Errorf("of nothing %d bytes came, %v", told, err)
				}
			})
		}
	}
}

// A GPU copies a part when the second behind it is read, and the last ones when they are.
func TestPourBehind(t *testing.T) {
	const size, behind, pieces = 64 << 10, 2, 12
	rig := rigOf(t, 1)
	rig.ring.behind = behind
	end, want := rig.ends[0], rig.want[0]
	poison := bytes.Repeat([]byte{0xFF}, size)
	rig.loads = nil
	for number := range int64(pieces) {
		earlier := (number - behind) * size
		rig.loads = append(rig.loads, Load{end, number * size, weights.Range{Bytes: size, Step: size, Read: func(into []byte, _ int64) error {
			if number >= behind {
				time.Sleep(5 * time.Millisecond) // in which what is wrong would be copied
				found := make([]byte, size)
				if err := end.Context.Within(func() error {
					return errors.Join(end.Beside.Down(found, end.at(earlier)), end.Beside.Synchronize())
				}); err != nil {
					return err
				}
				if !bytes.Equal(found, poison) {
					t.Errorf("while piece %d is read, piece %d is copied", number, number-behind)
				}
			}
			copy(into, bytes.Repeat([]byte{byte(number)}, size))
			return nil
		}}})
		copy(want[number*size:], bytes.Repeat([]byte{byte(number)}, size))
	}
	for i := range want[pieces*size:] {
		want[pieces*size+i] = 0xFF
	}
	if _, err := rig.pour(t.Context(), rig.loads); err != nil {
		t.Error(err)
	}
	rig.same(t)
}

// A ring that is made ahead has all its parts when one is needed, and one that is closed
// meanwhile leaves nothing pinned.
func TestMake(t *testing.T) {
	rig := rigOf(t, 1)
	end := rig.ends[0]
	rig.ring.Make(end.Context)
	rig.ring.making.Wait()
	rig.whole(t)
	held := driver.Held()
	for range 50 {
		ring := New(Shape{Parts: 4, Size: 64 << 10, Share: 32 << 10, Behind: 1})
		ring.Make(end.Context)
		if err := end.Context.Within(ring.Close); err != nil {
			t.Fatal(err)
		}
	}
	if now := driver.Held(); now != held {
		t.Errorf("the process holds %s, and before %s", now, held)
	}
}

// Whatever ends it early ends all of it with its error, and what is poured then is
// as if there had been nothing.
func TestPourThatEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, want := range map[string]error{"read": broken, "cancelled": context.Canceled} {
		for _, at := range []int64{1, 5, 300} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				rig := rigOf(t, 2)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var reads atomic.Int64
				loads := slices.Clone(rig.loads)
				for i := range loads {
					read := loads[i].Values.Read
					loads[i].Values.Read = func(into []byte, from int64) error {
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
				if _, err := rig.pour(ctx, loads); !errors.Is(err, want) {
					t.Errorf("it ends with %v", err)
				}
				rig.whole(t)
				if _, err := rig.pour(t.Context(), rig.loads); err != nil {
					t.Error(err)
				}
				rig.same(t)
			})
		}
	}
}

// A byte that becomes another one on its way is found, and the error says where.
func TestPourOfAWrongByte(t *testing.T) {
	for _, copies := range []string{"1", "2", "9"} {
		t.Run(copies, func(t *testing.T) {
			rig := rigOf(t, 2)
			t.Setenv("FAKE_CUDA_FLIP", copies)
			_, err := rig.pour(t.Context(), rig.loads)
			if err == nil || !strings.HasPrefix(err.Error(), "values ") || !strings.Contains(err.Error(), " as they were read: their checksum is ") {
				t.Error(err)
			}
			rig.whole(t)
			t.Setenv("FAKE_CUDA_FLIP", "")
			if _, err := rig.pour(t.Context(), rig.loads); err != nil {
				t.Error(err)
			}
			rig.same(t)
		})
	}
}

// hang gives a stream a kernel that ends when what it returns is called.
func (rig *rig) hang(t *testing.T, stream *driver.Stream) (release func()) {
	t.Helper()
	var flag *driver.Pinned
	end, kernels := rig.ends[0], kernel.New(false)
	if err := end.Context.Within(func() (err error) {
		if flag, err = driver.Pin(4); err != nil {
			return err
		}
		clear(flag.Data)
		one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		return kernels.Launch(stream, "hang", one, func(arguments *driver.Arguments) { arguments.Address(flag.Address()) })
	}); err != nil {
		t.Fatal(err)
	}
	return func() {
		flag.Data[0] = 1
		if err := end.Context.Within(func() error {
			return errors.Join(stream.Synchronize(), end.Stream.Synchronize(), end.Beside.Synchronize(), flag.Free(), kernels.Unload())
		}); err != nil {
			t.Error(err)
		}
	}
}

// A copy that does not end in time is given up, and so is a kernel that sums up.
func TestPourThatHangs(t *testing.T) {
	for name, stream := range map[string]func(end *End) *driver.Stream{
		"copy": func(end *End) *driver.Stream { return end.Stream }, "sums": func(end *End) *driver.Stream { return end.Beside },
	} {
		t.Run(name, func(t *testing.T) {
			rig := rigOf(t, 1)
			release := rig.hang(t, stream(rig.ends[0]))
			var late *LateError
			err := rig.ring.Pour(t.Context(), rig.loads, Hands{3, true}, 50*time.Millisecond, func(int64) {})
			if !errors.As(err, &late) || !strings.HasPrefix(late.Place, "values ") {
				t.Errorf("%v", err)
			}
			if len(rig.ring.free) == rig.ring.count {
				t.Error("parts and rooms that the GPU may still be at are free")
			}
			release()
			for len(rig.ring.free) < rig.ring.count {
				rig.ring.free <- nil
			}
		})
	}
}

// What is stopped while the GPU copies waits for that, and gives no part back of which the
// copy does not end.
func TestPourThatIsStoppedInFlight(t *testing.T) {
	rig := rigOf(t, 1)
	end := rig.ends[0]
	release := rig.hang(t, end.Stream)
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			for _, event := range end.events {
				if ended, err := event.Ended(); !ended || err != nil {
					cancel()
				}
			}
		}
	})
	err := rig.ring.Pour(ctx, rig.loads, Hands{3, true}, time.Second, func(int64) {})
	cancel()
	if watch.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if len(rig.ring.free) == rig.ring.count {
		t.Error("parts that the GPU may still copy are free")
	}
	release()
	for len(rig.ring.free) < rig.ring.count {
		rig.ring.free <- nil
	}
}

// A room is another stretch's only when what lies there was compared: where the GPU is
// slow to sum up, copies wait for it.
func TestPourOfMoreThanRooms(t *testing.T) {
	rig := rigOf(t, 1)
	release := sync.OnceFunc(rig.hang(t, rig.ends[0].Beside))
	defer release()
	var reads atomic.Int64
	var loads []Load
	for i := range 10 * rooms {
		read := func(into []byte, _ int64) error {
			if reads.Add(1) == rooms+4 { // the ring's parts are full behind as many as there are rooms for
				go release()
			}
			clear(into)
			into[i%8] = byte(i + 1)
			return nil
		}
		loads = append(loads, Load{rig.ends[0], int64(8 * i), weights.Range{Bytes: 8, Step: 8, Place: "values", Read: read}})
	}
	told := int64(0)
	err := rig.ring.Pour(t.Context(), loads, Hands{1, true}, time.Minute, func(bytes int64) { told += bytes })
	if err != nil || told != 80*rooms {
		t.Errorf("%d bytes, %v", told, err)
	}
	rig.whole(t)
}

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

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/drivertest"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/fixtures"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("FAKE_CUDA_GPUS", "2"); err != nil {
		panic(err)
	}
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

// harness is a ring with ends on its GPU, and loads; the arenas should have want after them.
type harness struct {
	ring  *Ring
	ends  []*End
	loads []Load
	want  [][]byte
	bytes int64
}

// newHarness has values of odd sizes at odd places of so many arenas. It checks for leaks
// when the test ends.
func newHarness(t *testing.T, arenas int) *harness {
	t.Helper()
	if err := driver.Open(); err != nil {
		t.Fatal(err)
	}
	devices := fixtures.Must(driver.Devices())(t)
	harness := &harness{ring: New(Shape{Parts: 4, Size: 64 << 10, Share: 32 << 10, Behind: 1})}
	generator := rand.New(rand.NewPCG(1, 2))
	t.Cleanup(func() {
		if leaked := driver.Unreleased(); leaked != "" {
			t.Errorf("the process still holds %s", leaked)
		}
	})
	for i := range arenas {
		harness.end(t, &devices[0], int64(i))
		harness.addValues(generator, int64(4-i)<<20)
	}
	return harness
}

// end makes one, with its arena of poison.
func (harness *harness) end(t *testing.T, gpu *driver.Device, number int64) {
	t.Helper()
	context := fixtures.Must(gpu.Retain())(t)
	kernels := kernel.New(false, 0)
	end := &End{Name: fmt.Sprint("arena ", number), Ring: harness.ring, Context: context}
	var arena *driver.Arena
	if err := context.Within(func() (err error) {
		if arena, err = gpu.Map(4 << 20); err != nil {
			return err
		}
		end.Arena = arena.Address
		if end.Stream, err = driver.NewStream(); err != nil {
			return err
		}
		if end.SumStream, err = driver.NewStream(); err != nil {
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
			all := []error{end.Close(), end.Stream.Destroy(), end.SumStream.Destroy(), kernels.Unload()}
			if number == 0 { // it is the last to end
				all = append(all, harness.ring.Close())
			}
			return errors.Join(append(all, arena.Release())...)
		})
		if err := errors.Join(err, context.Release()); err != nil {
			t.Error(err)
		}
	})
	harness.ends = append(harness.ends, end)
}

// addValues adds random values for the last end.
func (harness *harness) addValues(generator *rand.Rand, bytes int64) {
	want := make([]byte, 4<<20)
	for i := range want {
		want[i] = 0xFF
	}
	for at := int64(3); ; at += 2 * generator.Int64N(2) { // some follow each other
		size := []int64{1, 7, 8, 4097, 64 << 10, 64<<10 + 1, 200_001, 1_000_003}[generator.IntN(8)]
		if at+size > bytes {
			break
		}
		values := want[at : at+size]
		for i := range values {
			values[i] = byte(generator.Uint32())
		}
		harness.loads = append(harness.loads, Load{harness.ends[len(harness.ends)-1], at, weights.Range{
			Bytes: size, Step: []int64{3, 4096, 100_000}[generator.IntN(3)] + 4093, Place: fmt.Sprint("values ", len(harness.loads)),
			Read: func(into []byte, from int64) error {
				copy(into, values[from:from+int64(len(into))])
				return nil
			},
		}})
		at, harness.bytes = at+size, harness.bytes+size
	}
	harness.want = append(harness.want, want)
}

func (harness *harness) upload(ctx context.Context, loads []Load) (uploaded int64, err error) {
	err = harness.ring.Upload(ctx, loads, Workers{3, true}, time.Minute, func(bytes int64) { uploaded += bytes })
	return uploaded, err
}

// same compares the arenas with want, and checks that all parts of the ring are free.
func (harness *harness) same(t *testing.T) {
	t.Helper()
	for i, end := range harness.ends {
		got := make([]byte, len(harness.want[i]))
		if err := end.Context.Within(func() error { return end.Read(0, got) }); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got, harness.want[i]) {
			t.Errorf("arena %d has other bytes", i)
		}
	}
	harness.whole(t)
}

func (harness *harness) whole(t *testing.T) {
	t.Helper()
	if len(harness.ring.free) != harness.ring.count {
		t.Errorf("%d of the ring's %d parts are free", len(harness.ring.free), harness.ring.count)
	}
}

// Loaded values are in their places, whatever their sizes, and nothing else changed. The
// test has one arena and two, large pages or none, and workers that wait awake or that are
// more than the processors.
func TestUpload(t *testing.T) {
	for _, arenas := range []int{1, 2} {
		for _, register := range []string{"1", "0"} {
			t.Run(fmt.Sprint(arenas, register), func(t *testing.T) {
				t.Setenv("FAKE_CUDA_REGISTER", register)
				harness := newHarness(t, arenas)
				if made := len(harness.ring.free); made != 1 {
					t.Errorf("before anything is poured the ring has %d parts", made)
				}
				for _, crowded := range []bool{false, true} {
					uploaded := int64(0)
					err := harness.ring.Upload(t.Context(), harness.loads, Workers{3, crowded}, time.Minute, func(bytes int64) { uploaded += bytes })
					if err != nil || uploaded != harness.bytes {
						t.Errorf("%d bytes were told of, want %d; %v", uploaded, harness.bytes, err)
					}
				}
				harness.same(t)
				if uploaded, err := harness.upload(t.Context(), nil); uploaded != 0 || err != nil {
					t.Errorf("of nothing %d bytes came, %v", uploaded, err)
				}
			})
		}
	}
}

// A GPU copies a part once the second after it is read, the first part once it is itself, and the last
// parts once they are.
func TestUploadWaitsForLaterReads(t *testing.T) {
	const size, behind, pieces = 64 << 10, 2, 12
	harness := newHarness(t, 1)
	harness.ring.behind = behind
	end, want := harness.ends[0], harness.want[0]
	poison := bytes.Repeat([]byte{0xFF}, size)
	harness.loads = nil
	for number := range int64(pieces) {
		earlier := (number - behind) * size
		harness.loads = append(harness.loads, Load{end, number * size, weights.Range{Bytes: size, Step: size, Read: func(into []byte, _ int64) error {
			if number >= 2*behind { // from then on none is copied before
				time.Sleep(5 * time.Millisecond) // in which what is wrong would be copied
				found := make([]byte, size)
				if err := end.Context.Within(func() error {
					return errors.Join(end.SumStream.Down(found, end.at(earlier)), end.SumStream.Synchronize())
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
	if _, err := harness.upload(t.Context(), harness.loads); err != nil {
		t.Error(err)
	}
	harness.same(t)
}

// A ring that is made ahead has all its parts when one is needed, and one that is closed
// meanwhile leaves nothing pinned.
func TestMake(t *testing.T) {
	harness := newHarness(t, 1)
	end := harness.ends[0]
	harness.ring.Make(end.Context)
	harness.ring.making.Wait()
	harness.whole(t)
	before := driver.Unreleased()
	for range 50 {
		ring := New(Shape{Parts: 4, Size: 64 << 10, Share: 32 << 10, Behind: 1})
		ring.Make(end.Context)
		if err := end.Context.Within(ring.Close); err != nil {
			t.Fatal(err)
		}
	}
	if now := driver.Unreleased(); now != before {
		t.Errorf("the process holds %s, and before %s", now, before)
	}
}

// An upload that ends early ends all of its work with its error, and the next upload
// succeeds.
func TestUploadThatEnds(t *testing.T) {
	broken := errors.New("broken")
	for name, want := range map[string]error{"read": broken, "cancelled": context.Canceled} {
		for _, at := range []int64{1, 5, 300} {
			t.Run(fmt.Sprint(name, at), func(t *testing.T) {
				harness := newHarness(t, 2)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var reads atomic.Int64
				loads := slices.Clone(harness.loads)
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
				if _, err := harness.upload(ctx, loads); !errors.Is(err, want) {
					t.Errorf("it ends with %v", err)
				}
				harness.whole(t)
				if _, err := harness.upload(t.Context(), harness.loads); err != nil {
					t.Error(err)
				}
				harness.same(t)
			})
		}
	}
}

// A byte that becomes another one on its way is found, and the error says where.
func TestUploadOfAWrongByte(t *testing.T) {
	for _, copies := range []string{"1", "2", "9"} {
		t.Run(copies, func(t *testing.T) {
			harness := newHarness(t, 2)
			t.Setenv("FAKE_CUDA_FLIP", copies)
			_, err := harness.upload(t.Context(), harness.loads)
			if err == nil || !strings.HasPrefix(err.Error(), "values ") || !strings.Contains(err.Error(), " differ from those read: checksum ") {
				t.Error(err)
			}
			harness.whole(t)
			t.Setenv("FAKE_CUDA_FLIP", "")
			if _, err := harness.upload(t.Context(), harness.loads); err != nil {
				t.Error(err)
			}
			harness.same(t)
		})
	}
}

// hang gives a stream a kernel that ends when what it returns is called.
func (harness *harness) hang(t *testing.T, stream *driver.Stream) (release func()) {
	t.Helper()
	var flag *driver.Pinned
	end, kernels := harness.ends[0], kernel.New(false, 0)
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
			return errors.Join(stream.Synchronize(), end.Stream.Synchronize(), end.SumStream.Synchronize(), flag.Free(), kernels.Unload())
		}); err != nil {
			t.Error(err)
		}
	}
}

// A copy that does not end in time is given up, and so is a kernel that sums up.
func TestUploadThatHangs(t *testing.T) {
	for name, stream := range map[string]func(end *End) *driver.Stream{
		"copy": func(end *End) *driver.Stream { return end.Stream }, "sums": func(end *End) *driver.Stream { return end.SumStream },
	} {
		t.Run(name, func(t *testing.T) {
			harness := newHarness(t, 1)
			release := harness.hang(t, stream(harness.ends[0]))
			var late *LateError
			err := harness.ring.Upload(t.Context(), harness.loads, Workers{3, true}, 50*time.Millisecond, func(int64) {})
			if !errors.As(err, &late) || !strings.HasPrefix(late.Place, "values ") {
				t.Errorf("%v", err)
			}
			if len(harness.ring.free) == harness.ring.count {
				t.Error("parts and rooms that the GPU may still be at are free")
			}
			release()
			for len(harness.ring.free) < harness.ring.count {
				harness.ring.free <- nil
			}
		})
	}
}

// An upload that is stopped while the GPU copies waits for the copies. It does not free a
// part whose copy does not end.
func TestUploadThatIsStoppedInFlight(t *testing.T) {
	harness := newHarness(t, 1)
	end := harness.ends[0]
	release := harness.hang(t, end.Stream)
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
	err := harness.ring.Upload(ctx, harness.loads, Workers{3, true}, time.Second, func(int64) {})
	cancel()
	watch.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if len(harness.ring.free) == harness.ring.count {
		t.Error("parts that the GPU may still copy are free")
	}
	release()
	for len(harness.ring.free) < harness.ring.count {
		harness.ring.free <- nil
	}
}

// Another stretch gets a sum slot only after its sums are compared: if the GPU is slow to
// sum up, copies wait for it.
func TestUploadOfMoreThanSumSlots(t *testing.T) {
	harness := newHarness(t, 1)
	release := sync.OnceFunc(harness.hang(t, harness.ends[0].SumStream))
	defer release()
	var reads atomic.Int64
	var loads []Load
	for i := range 10 * sumSlots {
		read := func(into []byte, _ int64) error {
			if reads.Add(1) == sumSlots+4 { // the ring's parts are full after as many as there are sum slots for
				go release()
			}
			clear(into)
			into[i%8] = byte(i + 1)
			return nil
		}
		loads = append(loads, Load{harness.ends[0], int64(16 * i), weights.Range{Bytes: 8, Step: 8, Place: "values", Read: read}})
	}
	uploaded := int64(0)
	err := harness.ring.Upload(t.Context(), loads, Workers{1, true}, time.Minute, func(bytes int64) { uploaded += bytes })
	if err != nil || uploaded != 80*sumSlots {
		t.Errorf("%d bytes, %v", uploaded, err)
	}
	harness.whole(t)
}

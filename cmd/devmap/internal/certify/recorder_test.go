package certify

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// fake is a GPU with a clock that moves at each reading.
type fake struct {
	now   time.Time
	seen  func(elapsed time.Duration) executor.MemoryReading
	began time.Time
	fills int
	lost  error
}

func (fake *fake) GPUs() []executor.MonitoredGPU {
	return []executor.MonitoredGPU{{GPU: 3, UUID: "GPU-3", Process: 7}}
}
func (fake *fake) Close() error { return nil }

func (fake *fake) Holdings() []executor.Holding {
	return []executor.Holding{{Kind: "streams", Count: 1}}
}

func (fake *fake) Look() ([]executor.MemoryReading, error) {
	return []executor.MemoryReading{fake.seen(fake.now.Sub(fake.began))}, fake.lost
}

func (fake *fake) Refill(int, int64) (executor.RefillResult, error) {
	fake.fills++
	return executor.RefillResult{FreeBytes: free, MarginBytes: Margin, Bytes: free - Margin, Took: time.Second}, fake.lost
}

func recording(t *testing.T) (*fake, *Recorder, *Document) {
	t.Helper()
	fake := &fake{now: time.Unix(1000, 0), seen: steady(free, used)}
	document := new(Document)
	recorder := NewRecorder(fake, document.Take)
	recorder.Sleep = func(time time.Duration) { fake.now = fake.now.Add(time) }
	recorder.Now = func() time.Time { return fake.now }
	return fake, recorder, document
}

func steady(free, used int64) func(time.Duration) executor.MemoryReading {
	return func(time.Duration) executor.MemoryReading {
		return executor.MemoryReading{DriverFree: free, NVMLUsed: known(used), Own: known(used)}
	}
}

// unload is the end of a turn.
func (fake *fake) unload(t *testing.T, recorder *Recorder, cycle int64, last bool) {
	t.Helper()
	fake.began = fake.now
	if err := recorder.Unloaded(Unload{Cycle: cycle, Of: 5, Plan: "a.json", End: Closed}, last, fake.began); err != nil {
		t.Fatal(err)
	}
}

// TestRecorder: a recorder reads GPUs after each unload until all memory is free again. It makes
// the reference at the end of the first cycle, after NVML's delay.
func TestRecorder(t *testing.T) {
	t.Parallel()
	fake, recorder, document := recording(t)
	if len(document.GPUs) != 1 || document.GPUs[0].GPU != 3 {
		t.Fatalf("%+v", document.GPUs)
	}
	recorder.Poisoned(2, 64, true)
	fake.unload(t, recorder, 1, false)
	if unload := &document.Cycles[0]; fake.fills != 0 || !slices.Equal(unload.Poison, []Poison{{2, 64, true}}) || len(unload.Ledger) != 1 || unload.GPUs[0].Seconds != nil || len(unload.GPUs[0].Curve) != 6 {
		t.Errorf("%+v", unload)
	}
	late := func(after time.Duration) func(time.Duration) executor.MemoryReading {
		return func(elapsed time.Duration) executor.MemoryReading {
			if elapsed < after {
				return steady(free, used+50*mebibyte)(0)
			}
			return steady(free, used)(0)
		}
	}
	fake.seen = late(700 * time.Millisecond)
	fake.unload(t, recorder, 1, true)
	if reference := document.GPUs[0].Reference; fake.fills != 1 || reference == nil || *reference.NVMLUsedBytes != used || reference.DriverFreeBytes != free {
		t.Errorf("%+v: NVML is late by 0.7 s", reference)
	}
	fake.seen = late(300 * time.Millisecond)
	fake.unload(t, recorder, 2, true)
	unload := &document.Cycles[2]
	if left := &unload.GPUs[0]; left.Seconds == nil || *left.Seconds != 0.3 || len(left.Curve) != 16 || *left.NVMLUsedBytes != used || unload.Poison != nil || fake.fills != 2 {
		t.Errorf("%+v", left)
	}
	fake.seen = steady(free-Granule, used+Granule)
	fake.unload(t, recorder, 3, false)
	if left := &document.Cycles[3].GPUs[0]; left.Seconds == nil || *left.Seconds != 0 || len(left.Curve) != 51 {
		t.Errorf("a granule less: %v, %d looks", left.Seconds, len(left.Curve))
	}
	fake.seen = late(1100 * time.Millisecond)
	fake.unload(t, recorder, 4, true)
	if left := &document.Cycles[4].GPUs[0]; left.Seconds != nil || len(left.Curve) != 51 {
		t.Errorf("later than a second: %v, %d looks", left.Seconds, len(left.Curve))
	}
	if len(document.Refill) != 3 || document.Refill[2].Cycle != 4 || document.Refill[2].GPU != 3 || !document.Refill[2].Allocated {
		t.Errorf("%+v", document.Refill)
	}
	fake.lost = errors.New("a lost GPU")
	if err := recorder.Unloaded(Unload{}, true, fake.now); !errors.Is(err, fake.lost) {
		t.Errorf("%v", err)
	}
}

// TestFilled: the driver's answer to a refill is in the document.
func TestFilled(t *testing.T) {
	t.Parallel()
	if made := Filled(2, 1, &executor.RefillResult{Bytes: 64, Refused: errors.New("no memory")}); made.Allocated || !made.Refused || made.Error != "no memory" {
		t.Errorf("%+v", made)
	}
	if made := Filled(2, 1, &executor.RefillResult{FreeBytes: 5}); made.Allocated || made.Refused || made.Error != "" {
		t.Errorf("%+v", made)
	}
}

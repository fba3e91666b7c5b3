package certify

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// Margin is what a refill leaves free of a GPU, in bytes: what cuMemGetInfo has free is
// partly in pieces smaller than a granule, and the mapping itself takes page tables. Of
// one H200 under driver 580 all but two granules could be had in one piece; six more are
// for others' tables and pieces.
const Margin = 8 * Granule

// often is the time between looks at GPUs after an unload. still is how long they are to
// be the same while there is no reference yet.
const (
	often = 20 * time.Millisecond
	still = 100 * time.Millisecond
)

// Recorder looks at GPUs after each unload of a run, and reports what it sees.
type Recorder struct {
	Observer executor.GPUMonitor
	// Tell is called with what was seen as soon as it was.
	Tell func(observation *Observation)
	// Sleep waits; tests have time of their own.
	Sleep func(time.Duration)
	Now   func() time.Time

	reference []Reference // by GPU; nil: the first cycle is not over
	lock      sync.Mutex
	poison    []Poison // since the last unload
}

// Observation is what a recorder has seen. One of its fields is set.
type Observation struct {
	GPUs      []executor.MonitoredGPU `json:"gpus,omitzero"`
	Unload    *Unload                 `json:"unload,omitzero"`
	Refill    []Refill                `json:"refill,omitzero"`
	Reference []Reference             `json:"reference,omitzero"` // by GPU
}

// NewRecorder returns a recorder, and reports the GPUs that it looks at.
func NewRecorder(observer executor.GPUMonitor, tell func(observation *Observation)) *Recorder {
	tell(&Observation{GPUs: observer.GPUs()})
	return &Recorder{Observer: observer, Tell: tell, Sleep: time.Sleep, Now: time.Now}
}

// Poisoned notes what reading an arena back found before it was released. Devices may
// call it concurrently.
func (recorder *Recorder) Poisoned(device int32, bytes int64, wrong bool) {
	recorder.lock.Lock()
	defer recorder.lock.Unlock()
	recorder.poison = append(recorder.poison, Poison{device, bytes, wrong})
}

// Unloaded looks at what is left of a model that was unloaded just now, since when. Its
// Cycle, Of, Plan and End are given; last: it ends its cycle.
func (recorder *Recorder) Unloaded(unload Unload, last bool, since time.Time) error {
	recorder.lock.Lock()
	unload.Ledger, unload.Poison = recorder.Observer.Holdings(), recorder.poison
	recorder.poison = nil
	recorder.lock.Unlock()
	slices.SortFunc(unload.Poison, func(one, other Poison) int { return cmp.Compare(one.Device, other.Device) })
	var err error
	if unload.GPUs, err = recorder.poll(since, recorder.reference == nil); err != nil {
		return err
	}
	recorder.Tell(&Observation{Unload: &unload})
	if !last {
		return nil
	}
	refilled, err := recorder.refill(unload.Cycle)
	if err != nil {
		return err
	}
	recorder.Tell(&Observation{Refill: refilled})
	if recorder.reference == nil {
		return recorder.refer()
	}
	return nil
}

// poll looks again and again: until all is back, or the time for that is over; where
// there is no reference, until nothing has changed for a while.
func (recorder *Recorder) poll(since time.Time, settle bool) ([]Left, error) {
	gpus := recorder.Observer.GPUs()
	all := make([]Left, len(gpus))
	changed := recorder.Now()
	for first := true; ; first = false {
		now := recorder.Now()
		seen, err := recorder.Observer.Look()
		if err != nil {
			return nil, err
		}
		for i := range all {
			if before := all[i]; first || before.DriverFreeBytes != seen[i].DriverFree || !same(before.NVMLUsedBytes, seen[i].NVMLUsed) {
				changed = now
			}
			all[i].add(gpus[i].GPU, now.Sub(since).Seconds(), &seen[i])
		}
		switch {
		case settle && now.Sub(changed) >= still, !settle && recorder.back(all, 0), now.Sub(since).Seconds() >= Within:
			return all, nil
		}
		recorder.Sleep(often)
	}
}

// add enters a look.
func (left *Left) add(gpu int, seconds float64, seen *executor.MemoryReading) {
	left.GPU, left.DriverFreeBytes, left.NVMLUsedBytes, left.OwnBytes = gpu, seen.DriverFree, seen.NVMLUsed, seen.Own
	left.Curve = append(left.Curve, Reading{seconds, seen.DriverFree, seen.NVMLUsed})
}

func same(one, other *int64) bool {
	return one == nil && other == nil || one != nil && other != nil && *one == *other
}

// back reports that all GPUs have what they had at the reference but for some bytes, and
// notes when each came to that but for a granule.
func (recorder *Recorder) back(all []Left, but int64) bool {
	exact := true
	for i := range all {
		left, reference := &all[i], &recorder.reference[i]
		if left.Seconds == nil && left.has(reference, Granule) {
			seconds := left.Curve[len(left.Curve)-1].Seconds
			left.Seconds = &seconds
		}
		exact = exact && left.has(reference, but)
	}
	return exact
}

// has reports that a GPU has what the reference has but for some bytes, by both figures
// if both are known.
func (left *Left) has(reference *Reference, but int64) bool {
	if left.DriverFreeBytes < reference.DriverFreeBytes-but {
		return false
	}
	return left.NVMLUsedBytes == nil || reference.NVMLUsedBytes == nil || *left.NVMLUsedBytes <= *reference.NVMLUsedBytes+but
}

// refill takes all that each GPU has free, one after another.
func (recorder *Recorder) refill(cycle int64) (all []Refill, err error) {
	for i, gpu := range recorder.Observer.GPUs() {
		done, err := recorder.Observer.Refill(i, Margin)
		if err != nil {
			return nil, err
		}
		all = append(all, Filled(cycle, gpu.GPU, &done))
	}
	return all, nil
}

// Filled is what came of a refill.
func Filled(cycle int64, gpu int, done *executor.RefillResult) Refill {
	made := Refill{
		Cycle: cycle, GPU: gpu, FreeBytes: done.FreeBytes, MarginBytes: done.MarginBytes, Bytes: done.Bytes, Seconds: done.Took.Seconds(),
		Allocated: done.Bytes > 0 && done.Refused == nil, Wrong: done.Wrong, Refused: done.Refused != nil,
	}
	if done.Refused != nil {
		made.Error = done.Refused.Error()
	}
	return made
}

// refer makes the reference. NVML may be late: it is the last look of the time that
// later unloads have, whatever the first ones say.
func (recorder *Recorder) refer() error {
	for begin := recorder.Now(); recorder.Now().Sub(begin).Seconds() < Within; {
		recorder.Sleep(often)
	}
	seen, err := recorder.Observer.Look()
	if err != nil {
		return err
	}
	for i := range seen {
		recorder.reference = append(recorder.reference, Reference{seen[i].DriverFree, seen[i].NVMLUsed, seen[i].Own})
	}
	recorder.Tell(&Observation{Reference: slices.Clone(recorder.reference)})
	return nil
}

// Take enters an observation.
func (document *Document) Take(observation *Observation) {
	switch {
	case observation.GPUs != nil:
		for _, gpu := range observation.GPUs {
			document.GPUs = append(document.GPUs, GPU{MonitoredGPU: gpu})
		}
	case observation.Unload != nil:
		document.Cycles = append(document.Cycles, *observation.Unload)
	case observation.Reference != nil:
		for i := range min(len(document.GPUs), len(observation.Reference)) {
			document.GPUs[i].Reference = &observation.Reference[i]
		}
	default:
		document.Refill = append(document.Refill, observation.Refill...)
	}
}

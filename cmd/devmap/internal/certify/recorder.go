package certify

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/executor"
)

// Margin is the bytes that a refill leaves free on a GPU. Part of cuMemGetInfo's free memory is in
// pieces smaller than a granule, and the mapping itself needs page tables. On one H200 with driver
// 580, one allocation could take all but two granules; six more are for other tables and pieces.
const Margin = 8 * Granule

// often is the time between readings after an unload. still is how long readings must be equal
// while there is no reference yet.
const (
	often = 20 * time.Millisecond
	still = 100 * time.Millisecond
)

// Recorder reads GPUs after each unload of a run, and reports the readings.
type Recorder struct {
	Observer executor.GPUMonitor
	// Tell receives each observation immediately.
	Tell func(observation *Observation)
	// Sleep waits; tests replace it.
	Sleep func(time.Duration)
	Now   func() time.Time

	reference []Reference // by GPU; nil: before the end of the first cycle
	lock      sync.Mutex
	poison    []Poison // since the last unload
}

// Observation is a recorder's message. Exactly one field is set.
type Observation struct {
	GPUs      []executor.MonitoredGPU `json:"gpus,omitzero"`
	Unload    *Unload                 `json:"unload,omitzero"`
	Refill    []Refill                `json:"refill,omitzero"`
	Reference []Reference             `json:"reference,omitzero"` // by GPU
}

// NewRecorder returns a recorder, and reports the GPUs that it reads.
func NewRecorder(observer executor.GPUMonitor, tell func(observation *Observation)) *Recorder {
	tell(&Observation{GPUs: observer.GPUs()})
	return &Recorder{Observer: observer, Tell: tell, Sleep: time.Sleep, Now: time.Now}
}

// Poisoned records the result of reading an arena back before its release. Devices may call it
// concurrently.
func (recorder *Recorder) Poisoned(device int32, bytes int64, wrong bool) {
	recorder.lock.Lock()
	defer recorder.lock.Unlock()
	recorder.poison = append(recorder.poison, Poison{device, bytes, wrong})
}

// Unloaded reads the GPUs after a model was unloaded at time since. The caller sets Cycle, Of, Plan
// and End. last says that the unload ends its cycle.
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

// poll reads until all memory is released, or the time is over. Without a reference it reads until
// nothing changes for a while.
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

// add appends a reading.
func (left *Left) add(gpu int, seconds float64, seen *executor.MemoryReading) {
	left.GPU, left.DriverFreeBytes, left.NVMLUsedBytes, left.OwnBytes = gpu, seen.DriverFree, seen.NVMLUsed, seen.Own
	left.Curve = append(left.Curve, Reading{seconds, seen.DriverFree, seen.NVMLUsed})
}

func same(one, other *int64) bool {
	return one == nil && other == nil || one != nil && other != nil && *one == *other
}

// back reports that all GPUs match the reference except for some bytes. It records when each first
// matched to a granule.
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

// has reports that a GPU matches the reference except for some bytes, by both figures if both are
// known.
func (left *Left) has(reference *Reference, but int64) bool {
	if left.DriverFreeBytes < reference.DriverFreeBytes-but {
		return false
	}
	return left.NVMLUsedBytes == nil || reference.NVMLUsedBytes == nil || *left.NVMLUsedBytes <= *reference.NVMLUsedBytes+but
}

// refill allocates all free memory of each GPU, one after another.
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

// Filled returns the document's form of a refill.
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

// refer sets the reference. NVML may be late, so it uses a reading after the time that later
// unloads have, even if earlier readings are stable.
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

// Take adds an observation to the document.
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

package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
)

// Settings are what is watched, and how.
type Settings struct {
	Reader Reader
	Places []Place
	// The command's tree; nil: whatever is on the GPUs counts.
	Whose *Tree
	// Attached: the command already ran when the watching began.
	Attached bool
}

// How often readings are taken from the reader, which reads at its own pace. Waking a Go program
// takes as much of a core as a reading. How often processes are listed without a new peak, to see
// tenants that come or leave. How often GPUs without a device of the plan are read.
const (
	gather    = 500 * time.Millisecond
	whoOften  = time.Second
	elseOften = 2 * time.Second
)

// Sampler takes readings until its context ends.
type Sampler struct {
	settings Settings
	source   Source
	gpus     []GPU
	used     []int64

	lock      sync.Mutex
	accounts  []account // of the plan's GPUs, in the order of the readings
	elsewhere []account // of the others, which the command should not use
	pending   []reading
	asked     time.Time // when processes were last listed
	strayed   time.Time // when elsewhere was last read
	samples   int64
	longest   time.Duration // between two readings
	last      time.Duration
	lost      error // why reading ended early
}

// New takes the first reading: the memory in use before the command begins.
func New(settings Settings) (*Sampler, error) {
	reader := settings.Reader
	sampler := &Sampler{settings: settings, source: reader.Source(), gpus: reader.GPUs()}
	sampler.used = make([]int64, len(sampler.gpus))
	if err := reader.Used(sampler.used); err != nil {
		return nil, err
	}
	var followed []int
	for _, place := range settings.Places {
		sampler.accounts, followed = append(sampler.accounts, account{place: place}), append(followed, place.At)
	}
	for at := range sampler.gpus {
		if settings.Whose != nil && !slices.Contains(followed, at) {
			sampler.elsewhere = append(sampler.elsewhere, account{place: Place{At: at}})
		}
	}
	for _, some := range [][]account{sampler.accounts, sampler.elsewhere} {
		for i := range some {
			processes, err := reader.Processes(some[i].place.At)
			some[i].begin(sampler.used[some[i].place.At], processes, err, settings.Whose, settings.Attached)
		}
	}
	return sampler, reader.Follow(followed)
}

// Run takes readings until ctx ends, and once more then. The error says why it could not.
func (sampler *Sampler) Run(ctx context.Context) error {
	tick := time.NewTicker(gather)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := sampler.read(false); err != nil {
				return err
			}
		case <-ctx.Done():
			return sampler.read(true)
		}
	}
}

// read takes the readings since the last call. A new peak counts once its owner is known. At the
// end everything is read.
func (sampler *Sampler) read(ended bool) error {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	sampler.pending = sampler.pending[:0]
	sampler.lost = sampler.settings.Reader.Take(func(when time.Duration, used []int64) {
		sampler.pending = append(sampler.pending, reading{when, slices.Clone(used)})
	})
	if sampler.lost != nil {
		return sampler.lost
	}
	look := ended || time.Since(sampler.asked) >= whoOften
	if look {
		sampler.asked = time.Now()
	}
	for i := range sampler.accounts {
		account := &sampler.accounts[i]
		higher := slices.ContainsFunc(sampler.pending, func(one reading) bool { return account.higher(one.used[i]) })
		if look || higher {
			sampler.look(account)
		}
		for _, one := range sampler.pending {
			account.sample(one.when, one.used[i])
		}
	}
	for _, one := range sampler.pending {
		sampler.longest, sampler.last = max(sampler.longest, one.when-sampler.last), one.when
	}
	sampler.samples += int64(len(sampler.pending))
	if ended || time.Since(sampler.strayed) >= elseOften {
		return sampler.stray()
	}
	return nil
}

// look lists the processes on a GPU.
func (sampler *Sampler) look(account *account) {
	processes, err := sampler.settings.Reader.Processes(account.place.At)
	account.look(processes, err, sampler.settings.Whose)
}

// stray reads the GPUs without a device of the plan.
func (sampler *Sampler) stray() error {
	sampler.strayed = time.Now()
	if len(sampler.elsewhere) == 0 {
		return nil
	}
	if sampler.lost = sampler.settings.Reader.Used(sampler.used); sampler.lost != nil {
		return sampler.lost
	}
	for i := range sampler.elsewhere {
		account := &sampler.elsewhere[i]
		sampler.look(account)
		account.sample(0, sampler.used[account.place.At])
	}
	return nil
}

// GPUState is what is known of a GPU of the plan at a moment, in bytes.
type GPUState struct {
	Place
	GPU
	UsedBytes    int64 // of all processes
	BeforeBytes  int64 // in use before the command, or by others now
	CommandBytes int64 // the command's
	PeakBytes    int64 // the command's most
	Growth       Growth
	Processes    int    // the command's that the driver shows now
	Most         int    // the most of these at once
	Shown        bool   // the driver shows them
	Others       string // what other processes did; empty: nothing that is known
}

// State returns what is known now.
func (sampler *Sampler) State() []GPUState {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	states := make([]GPUState, len(sampler.accounts))
	for i := range sampler.accounts {
		account := &sampler.accounts[i]
		states[i] = GPUState{
			Place: account.place, GPU: sampler.gpus[account.place.At], UsedBytes: account.used, BeforeBytes: account.used - account.usedByCommand(),
			CommandBytes: account.usedByCommand(), PeakBytes: account.peak, Growth: account.growth,
			Processes: account.processes, Most: account.most, Shown: account.wasShown, Others: account.moved,
		}
	}
	return states
}

// Stray lists the command's memory on GPUs without a device of the plan, a sentence each. It is
// known only if the driver reports the owners of memory.
func (sampler *Sampler) Stray() []string {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	var all []string
	for i := range sampler.elsewhere {
		account, gpu := &sampler.elsewhere[i], &sampler.gpus[sampler.elsewhere[i].place.At]
		if account.wasShown {
			all = append(all, fmt.Sprintf("the command held %v at most of %s (%s), on which the plan has no device: CUDA_VISIBLE_DEVICES is followed where it is set for devmap, and not where the command sets it", costmodel.Bytes(account.peak), gpu.UUID, gpu.Name))
		}
	}
	return all
}

// Sampling describes the readings.
type Sampling struct {
	Source

	Samples        int64   `json:"samples"`
	Seconds        float64 `json:"seconds"`
	LongestSeconds float64 `json:"longest_seconds"` // between two readings
	Lost           string  `json:"lost,omitzero"`   // why readings ended early
}

// Sampling describes the readings until now.
func (sampler *Sampler) Sampling() Sampling {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	sampling := Sampling{
		Source: sampler.source, Samples: sampler.samples, Seconds: sampler.last.Seconds(),
		LongestSeconds: sampler.longest.Seconds(),
	}
	if sampler.lost != nil {
		sampling.Lost = sampler.lost.Error()
	}
	return sampling
}

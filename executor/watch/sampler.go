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
	// Whose is the command's tree; nil: whatever is on the GPUs is counted.
	Whose *Tree
	// Attached: the command was there before the watching.
	Attached bool
}

// How often readings are taken from the reader, who has them at its own pace: to wake
// a program in Go takes as much of a core as a reading. How often processes are asked
// for though no peak is new, so that a tenant who comes or leaves is seen; and how often
// GPUs are looked at that the plan has no device on.
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
	began    time.Time
	used     []int64

	lock      sync.Mutex
	accounts  []account // of the plan's GPUs, in the order of the readings
	elsewhere []account // of the others, where the command is not to be
	pending   []reading
	asked     time.Time // when processes were, last
	strayed   time.Time // when elsewhere was looked at, last
	samples   int64
	longest   time.Duration // between two readings
	last      time.Duration
	lost      error // why reading ended early
}

// New takes the first reading: what is held before the command begins.
func New(settings Settings) (*Sampler, error) {
	reader := settings.Reader
	sampler := &Sampler{settings: settings, source: reader.Source(), gpus: reader.GPUs(), began: time.Now()}
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

// Run takes readings until ctx ends, and once more then. An error is why it could not.
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

// read takes the readings since it was last called. A new peak among them is counted
// once it is known whose it is. At the end everything is looked at.
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

// look asks whose a GPU's memory is.
func (sampler *Sampler) look(account *account) {
	processes, err := sampler.settings.Reader.Processes(account.place.At)
	account.look(processes, err, sampler.settings.Whose)
}

// stray looks at the GPUs that the plan has no device on.
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

// GPUState is what is known of a GPU of the plan at a moment. Bytes.
type GPUState struct {
	Place
	GPU
	UsedBytes    int64 // of all processes
	BeforeBytes  int64 // held before the command, or by others now
	CommandBytes int64 // the command's
	PeakBytes    int64 // the most of that
	Growth       Growth
	Processes    int    // the command's that the driver shows now
	Most         int    // of these at once
	Shown        bool   // it shows them
	Others       string // what other processes did; empty: nothing that is known
}

// State is what is known now.
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

// Stray says where the command held memory of GPUs that the plan has no device on, a
// sentence each. Only where the driver tells whose memory is, that is known.
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

// Sampling is how the watching itself went.
type Sampling struct {
	Source

	Samples        int64   `json:"samples"`
	Seconds        float64 `json:"seconds"`
	LongestSeconds float64 `json:"longest_seconds"` // between two readings
	Lost           string  `json:"lost,omitzero"`   // why readings ended early
}

// Sampling tells how it went until now.
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

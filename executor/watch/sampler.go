package watch

import (
	"context"
	"fmt"
	"iter"
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

// whoOften is how often processes are asked for though no peak is new: a tenant that
// comes or leaves is seen then.
const whoOften = 500 * time.Millisecond

// Sampler reads GPUs until its context ends.
type Sampler struct {
	settings Settings
	source   Source
	gpus     []GPU
	began    time.Time
	used     []int64

	lock      sync.Mutex
	accounts  []account     // of the plan's GPUs
	elsewhere []account     // of the others, where the command is not to be
	asked     time.Duration // when processes were, last
	samples   int64
	busy      time.Duration // in readings
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
	for _, place := range settings.Places {
		sampler.accounts = append(sampler.accounts, account{place: place})
	}
	for at := range sampler.gpus {
		planned := slices.ContainsFunc(settings.Places, func(place Place) bool { return place.At == at })
		if settings.Whose != nil && !planned {
			sampler.elsewhere = append(sampler.elsewhere, account{place: Place{At: at}})
		}
	}
	for account := range sampler.all() {
		processes, err := reader.Processes(account.place.At)
		account.begin(sampler.used[account.place.At], processes, err, settings.Whose, settings.Attached)
	}
	sampler.samples = 1
	return sampler, nil
}

// all are the accounts of all GPUs.
func (sampler *Sampler) all() iter.Seq[*account] {
	return func(yield func(*account) bool) {
		for _, some := range [][]account{sampler.accounts, sampler.elsewhere} {
			for i := range some {
				if !yield(&some[i]) {
					return
				}
			}
		}
	}
}

// Run reads until ctx ends, and once more then. An error is why it could not.
func (sampler *Sampler) Run(ctx context.Context) error {
	tick := time.NewTicker(sampler.source.Interval())
	defer tick.Stop()
	for {
		ended := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		if err := sampler.read(); err != nil || ended {
			return err
		}
	}
}

// read takes one reading of all GPUs.
func (sampler *Sampler) read() error {
	begin := time.Now()
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	when := begin.Sub(sampler.began)
	if sampler.lost = sampler.settings.Reader.Used(sampler.used); sampler.lost != nil {
		return sampler.lost
	}
	look := when-sampler.asked >= whoOften
	for account := range sampler.all() {
		used := sampler.used[account.place.At]
		if look || account.higher(used) {
			processes, err := sampler.settings.Reader.Processes(account.place.At)
			account.look(processes, err, sampler.settings.Whose)
		}
		account.sample(when, used)
	}
	if look {
		sampler.asked = when
	}
	sampler.samples++
	sampler.longest, sampler.last = max(sampler.longest, when-sampler.last), when
	sampler.busy += time.Since(begin)
	return nil
}

// GPUState is what is known of a GPU of the plan at a moment. Bytes.
type GPUState struct {
	Place
	GPU
	UsedBytes   int64 // of all processes
	BeforeBytes int64 // held before the command, or by others now
	HeldBytes   int64 // the command's
	PeakBytes   int64 // the most of that
	Growth      Growth
	Processes   int    // the command's that the driver shows now
	Most        int    // of these at once
	Shown       bool   // it shows them
	Others      string // what other processes did; empty: nothing that was told
}

// State is what is known now.
func (sampler *Sampler) State() []GPUState {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	states := make([]GPUState, len(sampler.accounts))
	for i := range sampler.accounts {
		account := &sampler.accounts[i]
		states[i] = GPUState{
			Place: account.place, GPU: sampler.gpus[account.place.At], UsedBytes: account.used, BeforeBytes: account.used - account.held(),
			HeldBytes: account.held(), PeakBytes: account.peak, Growth: account.growth,
			Processes: account.processes, Most: account.most, Shown: account.told, Others: account.moved,
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
		if account.told {
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
	BusySeconds    float64 `json:"busy_seconds"`    // in readings
	Lost           string  `json:"lost,omitzero"`   // why readings ended early
}

// Sampling tells how it went until now.
func (sampler *Sampler) Sampling() Sampling {
	sampler.lock.Lock()
	defer sampler.lock.Unlock()
	told := Sampling{
		Source: sampler.source, Samples: sampler.samples, Seconds: sampler.last.Seconds(),
		LongestSeconds: sampler.longest.Seconds(), BusySeconds: sampler.busy.Seconds(),
	}
	if sampler.lost != nil {
		told.Lost = sampler.lost.Error()
	}
	return told
}

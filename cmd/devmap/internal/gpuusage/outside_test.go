package gpuusage

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/executor/watch"
)

// shown is a fake reader of one GPU.
type shown struct {
	lock      sync.Mutex
	used      int64
	processes []nvml.Process
	err       error
}

func (shown *shown) Source() watch.Source { return watch.Source{Name: "a reader"} }
func (shown *shown) GPUs() []watch.GPU    { return []watch.GPU{{UUID: "GPU-1"}} }
func (shown *shown) Used(into []int64) error {
	shown.lock.Lock()
	defer shown.lock.Unlock()
	into[0] = shown.used
	return shown.err
}

func (shown *shown) Processes(int) ([]nvml.Process, error) {
	shown.lock.Lock()
	defer shown.lock.Unlock()
	return slices.Clone(shown.processes), shown.err
}
func (*shown) Follow([]int) error                        { return nil }
func (*shown) Take(func(time.Duration, []int64)) error   { return nil }
func (*shown) Close() error                              { return nil }
func (shown *shown) say(used int64, all ...nvml.Process) { shown.used, shown.processes = used, all }

// The processes of the tests: the judged one, its parent, another user's, and one of another
// namespace.
const (
	judged   = 7
	tenant1  = 41
	tenant2  = 42
	stranger = 90000
)

func whose(_ string, process int) (ours, here bool) { return process == judged, process != stranger }

// outsideOf returns the readings of Outside for moments in order: the first is before the start,
// the last after the end.
func outsideOf(t *testing.T, moments ...func(shown *shown)) (*certify.After, *certify.GPU) {
	t.Helper()
	reader := new(shown)
	moments[0](reader)
	outside := &Outside{Whose: whose, reader: reader, stop: make(chan struct{}), often: time.Millisecond}
	if err := outside.settle(); err != nil {
		t.Fatal(err)
	}
	for _, moment := range moments[1:] {
		moment(reader)
		outside.look()
	}
	after := outside.End([]string{"GPU-1"}, "exit status 0")
	gpu := new(certify.GPU)
	gpu.UUID = "GPU-1"
	outside.Tell(gpu)
	return after, gpu
}

func say(used int64, all ...nvml.Process) func(shown *shown) {
	return func(shown *shown) { shown.say(used, all...) }
}

// TestOutside: memory that the process left is distinguished from other processes' memory.
func TestOutside(t *testing.T) {
	t.Parallel()
	const unit = 1 << 20
	one, two := nvml.Process{ID: tenant1, Used: 5 * unit}, nvml.Process{ID: tenant2, Used: -1}
	own, other := nvml.Process{ID: judged, Used: 300 * unit}, nvml.Process{ID: stranger, Used: 300 * unit}
	for name, is := range map[string]struct {
		moments    []func(shown *shown)
		difference int64
		alive      int
		shown      bool
		others     string
	}{
		"it came and left":       {[]func(*shown){say(7*unit, one, two), say(307*unit, one, two, own), say(7*unit, one, two)}, 0, 0, true, ""},
		"it is there still":      {[]func(*shown){say(0), say(300*unit, own)}, 300 * unit, 1, true, ""},
		"it is not shown":        {[]func(*shown){say(0), say(300 * unit), say(64 * unit)}, 64 * unit, 0, false, ""},
		"another namespace":      {[]func(*shown){say(0), say(300*unit, other), say(0)}, 0, 0, false, ""},
		"a stranger stays":       {[]func(*shown){say(0), say(300*unit, other)}, 300 * unit, 0, false, "process 90000 came, with 300.0 MiB, of another namespace: whose it is is not known"},
		"another came and left":  {[]func(*shown){say(0), say(5*unit, one), say(0)}, 0, 0, false, "process 41 came, with 5.0 MiB"},
		"another left":           {[]func(*shown){say(5*unit, one), say(0)}, -5 * unit, 0, false, "process 41 left, which had 5.0 MiB"},
		"another grew for a bit": {[]func(*shown){say(5*unit, one), say(6*unit, nvml.Process{ID: tenant1, Used: 6 * unit}), say(5*unit, one)}, 0, 0, false, "process 41 held between 5.0 MiB and 6.0 MiB"},
		"an unknown share left":  {[]func(*shown){say(2*unit, two), say(0)}, -2 * unit, 0, false, "process 42 left, which had an unknown amount of memory"},
	} {
		after, gpu := outsideOf(t, is.moments...)
		if len(after.GPUs) != 1 || after.GPUs[0].DifferenceBytes != is.difference || len(after.Alive) != is.alive || after.Shown != is.shown || after.Unmeasured != "" {
			t.Errorf("%s: %+v", name, after)
		}
		if gpu.Others != is.others {
			t.Errorf("%s: %q, want %q", name, gpu.Others, is.others)
		}
	}
	_, gpu := outsideOf(t, say(7*unit, one, two))
	if gpu.Before.UsedBytes != 7*unit || gpu.Before.OthersBytes != 5*unit {
		t.Errorf("%+v", gpu.Before)
	}
}

// TestOutsideWaits: drivers get some time to free a process's memory.
func TestOutsideWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testOutsideWaits)
}

func testOutsideWaits(t *testing.T) {
	reader := &shown{used: 5 << 20}
	outside := NewOutside(reader, nil, whose)
	reader.lock.Lock()
	reader.say(305<<20, nvml.Process{ID: judged, Used: 300 << 20})
	reader.lock.Unlock()
	time.Sleep(2 * outsideOften)
	time.AfterFunc(50*time.Millisecond, func() {
		reader.lock.Lock()
		defer reader.lock.Unlock()
		reader.say(5 << 20)
	})
	after := outside.End([]string{"GPU-1"}, "exit status 0")
	if after.Seconds != 0.06 || after.GPUs[0].DifferenceBytes != 0 || len(after.Alive) != 0 || !after.Shown {
		t.Errorf("%+v", after)
	}
}

// TestOutsideUnknown: without a reader, the result says that nothing was measured.
func TestOutsideUnknown(t *testing.T) {
	t.Parallel()
	outside := NewOutside(nil, errors.New("no NVML"), whose)
	gpu := &certify.GPU{}
	outside.Tell(gpu)
	if gpu.Before != nil {
		t.Errorf("%+v", gpu)
	}
	if after := outside.End([]string{"GPU-1"}, "exit status 0"); after.Unmeasured != "no NVML" {
		t.Errorf("%+v", after)
	}
	lost := &shown{err: errors.New("NVML error 15")}
	if after := NewOutside(lost, nil, whose).End([]string{"GPU-1"}, ""); !strings.Contains(after.Unmeasured, "NVML error 15") {
		t.Errorf("%+v", after)
	}
	if after := NewOutside(new(shown), nil, whose).End([]string{"GPU-2"}, ""); after.Unmeasured != "a reader shows no GPU-2" {
		t.Errorf("%+v", after)
	}
}

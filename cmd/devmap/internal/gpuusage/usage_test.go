package gpuusage

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
)

// TestMore: memory that other processes took in the meantime does not count for the process.
func TestMore(t *testing.T) {
	t.Parallel()
	const unit = int64(1 << 20)
	for name, is := range map[string]struct {
		before, now state
		want        int64
	}{
		"all given back":              {state{5 * unit, 3 * unit}, state{5 * unit, 3 * unit}, 0},
		"others gave back too":        {state{5 * unit, 3 * unit}, state{2 * unit, 0}, 0},
		"kept":                        {state{5 * unit, 3 * unit}, state{7 * unit, 3 * unit}, 2 * unit},
		"kept, and nobody is shown":   {state{0, 0}, state{900 * unit, 0}, 900 * unit},
		"another came":                {state{5 * unit, 3 * unit}, state{600 * unit, 600 * unit}, 0},
		"another came, told late":     {state{5 * unit, 3 * unit}, state{610 * unit, 600 * unit}, 0},
		"another came, and some kept": {state{0, 0}, state{900 * unit, 600 * unit}, 300 * unit},
		"another left, and some kept": {state{600 * unit, 600 * unit}, state{700 * unit, 0}, 700 * unit},
		"more left than was kept":     {state{600 * unit, 600 * unit}, state{300 * unit, 0}, 300 * unit},
	} {
		if got := is.before.more(is.now); got != is.want {
			t.Errorf("%s: %d, want %d", name, got, is.want)
		}
	}
}

// TestUnknown: the messages say that NVML reports nothing.
func TestUnknown(t *testing.T) {
	t.Parallel()
	gpu := executor.GPU{Name: "H200", UUID: "GPU-1"}
	unread := &Snapshot{err: errors.New("no NVML")}
	if said := unread.Released(1, []int{3}, []executor.GPU{gpu}, 0); len(said) != 1 || !strings.Contains(said[0], "is not known: no NVML") {
		t.Errorf("%q", said)
	}
	if said := new(Snapshot).Released(1, []int{3}, []executor.GPU{gpu}, 0); len(said) != 1 || said[0] != "GPU 3 (H200): what it holds now is not known: NVML does not show it" {
		t.Errorf("%q", said)
	}
	if _, known := new(Snapshot).Free("GPU-1"); known || new(Snapshot).Holders(3, gpu) != "" || unread.Holders(3, gpu) != "" {
		t.Error("it knows what nobody told")
	}
	new(Snapshot).Close()
}

//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// TestPaths: copies are timed between all devices, of one GPU and of several, whether
// these reach each other or not, or say so and do not; and nothing leaks.
func TestPaths(t *testing.T) {
	bytes, placements := int64(pathBytes), placements(t, 2)
	type setting struct{ name, value string }
	settings := []setting{{"FAKE_CUDA_CROSS", ""}}
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		bytes = 4 << 20
		settings = append(settings, setting{"FAKE_CUDA_PEERS", "0"}, setting{"FAKE_CUDA_PEERS", "0>1"}, setting{"FAKE_CUDA_DENIES", "1"}, setting{"FAKE_CUDA_CROSS", "1"})
	}
	for _, is := range settings {
		for _, ordinals := range placements {
			t.Run(fmt.Sprint(is, ordinals), func(t *testing.T) {
				t.Setenv(is.name, is.value)
				found, err := paths(ordinals, bytes)
				if err != nil {
					t.Fatal(err)
				}
				for i, one := range found {
					t.Logf("%d: %+v", i, one)
					other, apart := one.To[1-i], ordinals[0] != ordinals[1]
					wrong := apart && is == setting{"FAKE_CUDA_CROSS", "1"}
					staged := wrong || apart && is.name == "FAKE_CUDA_DENIES" || apart && is.name == "FAKE_CUDA_PEERS" && !strings.HasPrefix(is.value, fmt.Sprint(i, ">"))
					if one.Granule != 2<<20 || min(one.Inside, one.Up, one.Down, other.BytesPerSecond, other.Latency) <= 0 || one.To[i] != (executor.PathRate{}) {
						t.Errorf("%+v", one)
					}
					if other.Staged != staged || strings.Contains(other.Wrong, "carries bytes wrong: byte 524288 of 1048576") != wrong {
						t.Errorf("%+v, staged is %v", other, staged)
					}
				}
				if leaked := driver.Unreleased(); len(found) != len(ordinals) || leaked != "" {
					t.Errorf("%d of them, and the process still holds %s", len(found), leaked)
				}
			})
		}
	}
}

// TestClock: the clock reports every kernel of a timed step once, and none of the warm-up
// or of other steps.
func TestClock(t *testing.T) {
	job := forms(t)["device map"]
	times := make(map[string]int)
	tell := func(timed executor.KernelTime) {
		if timed.Took < 0 || timed.Took > time.Minute {
			t.Errorf("%s took %v", timed.Kernel.Name, timed.Took)
		}
		times[timed.Kernel.Name]++
	}
	clock := func(step int64) func(timed executor.KernelTime) {
		if step == 2 {
			return nil
		}
		return tell
	}
	given, open := make(map[string]int), false
	var lock sync.Mutex
	machine := bound(t, job, executor.GPUOptions{Devices: []int{0, 0, 0, 0}, Clock: clock}, func(call *kernel.Call, _ *kernel.Step) error {
		lock.Lock()
		defer lock.Unlock()
		if open {
			given[call.Kernel.Name]++
		}
		return nil
	})
	open = true
	for number := range 3 {
		if _, err := machine.Step(context.Background(), &executor.Step{Number: int64(number + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(given) < 5 {
		t.Errorf("kernels are %v", given)
	}
	for name, count := range given {
		if times[name]*3 != count*2 {
			t.Errorf("%s ran %d times, and was told %d times, of two steps in three", name, count, times[name])
		}
	}
}

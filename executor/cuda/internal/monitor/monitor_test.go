//go:build cuda && linux && cgo && amd64

package monitor

import (
	"os"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/drivertest"
	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/fixtures"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("FAKE_CUDA_GPUS", "4"); err != nil {
		panic(err)
	}
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

// opened looks at GPUs of the driver's, which NVML shows with others' processes.
func opened(gpus []int) (*Monitor, error) {
	if err := driver.Open(); err != nil {
		return nil, err
	}
	devices, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	library, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	handles, err := library.GPUs()
	if err != nil {
		return nil, err
	}
	return New(devices, gpus, func(uuid string) (nvml.GPU, []nvml.Process, string) {
		at := slices.IndexFunc(handles, func(handle nvml.GPU) bool { return handle.UUID == uuid })
		return handles[at], nil, ""
	})
}

// newMonitor monitors GPUs until the test ends, and checks for leaks then.
func newMonitor(t *testing.T, gpus ...int) *Monitor {
	t.Helper()
	monitor := fixtures.Must(opened(gpus))(t)
	t.Cleanup(func() {
		if err := monitor.Close(); err != nil {
			t.Error(err)
		}
		if leaked := driver.Unreleased(); leaked != "" {
			t.Errorf("the process still holds %s", leaked)
		}
	})
	if used := monitor.Holdings(); used != nil {
		t.Fatalf("%+v is in use in addition to the monitor's own", used)
	}
	return monitor
}

func seen(t *testing.T, monitor *Monitor) []executor.MemoryReading {
	t.Helper()
	all := fixtures.Must(monitor.Look())(t)
	return all
}

// TestMonitor: a monitor reports by kind what a process has in addition to it. It reports
// the free memory of each GPU by the driver and by NVML. An arena that is not released
// shows in all of them, on its own GPU.
func TestMonitor(t *testing.T) {
	monitor := newMonitor(t, 1, 3)
	gpus, before := monitor.GPUs(), seen(t, monitor)
	if len(gpus) != 2 || gpus[1].GPU != 3 || gpus[1].Unmeasured != "" || gpus[1].GranuleBytes != 2<<20 || gpus[1].Process == 0 {
		t.Fatalf("%+v", gpus)
	}
	const bytes = 6 << 20
	var arena *driver.Arena
	err := monitor.gpus[1].context.Within(func() (err error) {
		arena, err = monitor.gpus[1].Map(bytes)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if used := monitor.Holdings(); !slices.Equal(used, []executor.Holding{{Kind: "arenas", Count: 1, Bytes: bytes}}) {
		t.Errorf("%+v", used)
	}
	now := seen(t, monitor)
	if now[0].DriverFree != before[0].DriverFree || before[1].DriverFree-now[1].DriverFree != bytes {
		t.Errorf("%+v, before %+v", now, before)
	}
	if *now[1].NVMLUsed-*before[1].NVMLUsed != bytes || *now[1].Own-*before[1].Own != bytes || *now[0].Own != *before[0].Own {
		t.Errorf("NVML: %d %d, before %d %d", *now[1].NVMLUsed, *now[1].Own, *before[1].NVMLUsed, *before[1].Own)
	}
	if err := arena.Release(); err != nil {
		t.Fatal(err)
	}
	if used := monitor.Holdings(); used != nil {
		t.Errorf("%+v", used)
	}
}

// TestLess: less counts what is additional, and what is missing.
func TestLess(t *testing.T) {
	own := []executor.Holding{{Kind: "contexts", Count: 2, Bytes: 0}, {Kind: "modules", Count: 3, Bytes: 0}, {Kind: "pinned stretches", Count: 1, Bytes: 64}}
	got := less([]executor.Holding{{Kind: "arenas", Count: 1, Bytes: 8}, {Kind: "contexts", Count: 2, Bytes: 0}, {Kind: "pinned stretches", Count: 2, Bytes: 96}}, own)
	if want := []executor.Holding{{Kind: "arenas", Count: 1, Bytes: 8}, {Kind: "pinned stretches", Count: 1, Bytes: 32}, {Kind: "modules", Count: -3, Bytes: 0}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRefill: a refill takes all free memory but the margin. It detects a pattern that
// reads back as another one, and a driver that gives less than it says.
func TestRefill(t *testing.T) {
	const margin, granule = 4 << 20, 2 << 20
	t.Setenv("FAKE_CUDA_BYTES", "40000000")
	monitor := newMonitor(t, 0)
	refill := func(margin int64) executor.RefillResult {
		done := fixtures.Must(monitor.Refill(0, margin))(t)
		if used := monitor.Holdings(); used != nil {
			t.Errorf("%+v is held behind a refill", used)
		}
		return done
	}
	done := refill(margin)
	if free := seen(t, monitor)[0].DriverFree; done.FreeBytes != free || done.MarginBytes != margin || done.Bytes != (free-margin)/granule*granule || done.Refused != nil || done.Wrong {
		t.Errorf("%+v of %d", done, free)
	}
	t.Setenv("FAKE_CUDA_FORGETS", "1")
	if done := refill(margin); !done.Wrong {
		t.Error("a byte that reads back as another one is not seen")
	}
	t.Setenv("FAKE_CUDA_FORGETS", "2")
	if done := refill(margin); !done.Wrong {
		t.Error("a granule that is mapped twice is not seen")
	}
	t.Setenv("FAKE_CUDA_FORGETS", "0")
	t.Setenv("FAKE_CUDA_FULL", "20000000")
	if done := refill(margin); done.Refused == nil || done.Wrong {
		t.Errorf("the driver gives half of what it says: %+v", done)
	}
	if done := refill(50 << 20); done.Bytes != 0 || done.Refused != nil {
		t.Errorf("%+v where the margin is all", done)
	}
}

// TestNoMonitor: New refuses a GPU that does not exist, and leaks nothing.
func TestNoMonitor(t *testing.T) {
	if _, err := opened([]int{0, 9}); err == nil {
		t.Error("GPU 9 is looked at")
	}
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
}

//go:build cuda && linux && cgo

package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/internal/drivertest"
	"github.com/devmap-dev/devmap/fixtures"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("FAKE_CUDA_GPUS", "2"); err != nil {
		panic(err)
	}
	if err := drivertest.Main(m); err != nil {
		panic(err)
	}
}

func TestMissing(t *testing.T) {
	err := load([]string{"libnone.so.7", "libm.so.6"})
	if err == nil || !strings.Contains(err.Error(), "libnone.so.7") || !strings.Contains(err.Error(), "libm.so.6 has no nvmlInit_v2: it is no NVML") {
		t.Errorf("%v", err)
	}
}

func TestGPUs(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("the figures are those of GPUs that are none")
	}
	library := fixtures.Must(Open())(t)
	if version, err := library.Driver(); version != "520.61.05" || err != nil {
		t.Errorf("%q, %v", version, err)
	}
	all, err := library.GPUs()
	if err != nil || len(all) != 2 || all[1].Name != "Fake 1" || all[1].UUID != "GPU-11111111-1111-1111-1111-111111111111" {
		t.Fatalf("%+v, %v", all, err)
	}
	if cut, err := all[1].Cut(); cut || err != nil {
		t.Errorf("cut: %v, %v", cut, err)
	}
	memory, err := all[1].Memory()
	if want := (Memory{1 << 30, 1 << 20, 5 << 20, 1<<30 - 6<<20}); memory != want || err != nil {
		t.Errorf("%+v, %v", memory, err)
	}
	begin := time.Now()
	settled, who, err := all[1].Settled()
	if settled != memory || len(who) != 2 || err != nil || time.Since(begin) < still {
		t.Errorf("%+v, %+v, %v after %v", settled, who, err, time.Since(begin))
	}
	processes, err := all[0].Processes()
	if want := []Process{{41, 3 << 20}, {42, -1}}; !slices.Equal(processes, want) || err != nil {
		t.Errorf("%+v, %v", processes, err)
	}
	t.Setenv("FAKE_NVML_STAY", "1")
	settled, who, err = all[0].Settled()
	if settled.Used != 0 || len(who) != 0 || err != nil {
		t.Errorf("%+v, %+v, %v: those who left are there", settled, who, err)
	}
	if err := library.Close(); err != nil {
		t.Error(err)
	}
	if err := library.Close(); err == nil {
		t.Error("it was closed twice")
	}
}

// TestFollow: readings come at an even pace, none is lost that no one took in time,
// and the most of those is kept.
func TestFollow(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("the figures are those of GPUs that are none")
	}
	usage := filepath.Join(t.TempDir(), "held")
	setUsage := func(text string) {
		if err := errors.Join(os.WriteFile(usage+".new", []byte(text), 0o600), os.Rename(usage+".new", usage)); err != nil {
			t.Fatal(err)
		}
	}
	setUsage("1 7 100")
	t.Setenv("FAKE_NVML_HELD", usage)
	library, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	all, err := library.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	follower, err := library.Follow([]GPU{all[1], all[0]}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var count int
	last, used, most := time.Duration(-1), []int64(nil), make([]int64, 2)
	take := func() {
		if err := follower.Take(func(when time.Duration, bytes []int64) {
			if when <= last {
				t.Errorf("%v behind %v", when, last)
			}
			count, last, used = count+1, when, slices.Clone(bytes)
			most[0], most[1] = max(most[0], bytes[0]), max(most[1], bytes[1])
		}); err != nil {
			t.Fatal(err)
		}
	}
	for count < 20 {
		take()
	}
	if passed := time.Since(begin); count > 1+int(passed/time.Millisecond) || !slices.Equal(used, []int64{100 << 20, 0}) {
		t.Errorf("%d readings in %v, the last %d", count, passed, used)
	}
	time.Sleep(400 * time.Millisecond) // more than it keeps
	setUsage("0 7 900")
	time.Sleep(500 * time.Millisecond)
	setUsage("")
	time.Sleep(100 * time.Millisecond)
	count = 0
	take()
	if count > 256 || !slices.Equal(most, []int64{100 << 20, 900 << 20}) {
		t.Errorf("%d readings, the most of them %d", count, most)
	}
	for last < 1000*time.Millisecond { // a reading of now comes, whatever was lost
		take()
	}
	follower.End()
	if err := library.Close(); err != nil {
		t.Error(err)
	}
	if follower, err = library.Follow(all[:1], time.Millisecond); err != nil {
		t.Fatal(err)
	}
	follower.End()
}

// TestOldDriver: a driver from before memory's second version and processes' third
// is read by those before, and that is said.
func TestOldDriver(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") != "" {
		t.Skip("the driver is one that is none")
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	build := exec.Command("cc", "-DOLD", "-shared", "-fPIC", "-o", path, filepath.Join("..", "internal", "drivertest", "nvml.c"))
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	library, err := Open()
	if err != nil || library.Lacks() != "" {
		t.Fatalf("%v, %q", err, library.Lacks())
	}
	if err := errors.Join(library.Close(), load([]string{path})); err != nil {
		t.Fatal(err)
	}
	defer load(libraries) //nolint:errcheck // it was there before
	if library, err = Open(); err != nil || !strings.Contains(library.Lacks(), "older than 510") {
		t.Fatalf("%v, %q", err, library.Lacks())
	}
	t.Setenv("FAKE_NVML_MIG", "1")
	all, err := library.GPUs()
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	memory, err := all[1].Memory()
	if want := (Memory{1 << 30, 0, 6 << 20, 1<<30 - 6<<20}); memory != want || err != nil {
		t.Errorf("%+v, %v", memory, err)
	}
	processes, err := all[1].Processes()
	if want := []Process{{41, 3 << 20}, {42, -1}}; !slices.Equal(processes, want) || err != nil {
		t.Errorf("%+v, %v", processes, err)
	}
	for i, want := range []bool{false, true} {
		if cut, err := all[i].Cut(); cut != want || err != nil {
			t.Errorf("GPU %d: %v, %v", i, cut, err)
		}
	}
	if err := library.Close(); err != nil {
		t.Error(err)
	}
}

// TestGPUReading: a reading takes so little that every fence of a step can have one.
func TestGPUReading(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Skip("DEVMAP_TEST_GPU is not set")
	}
	library := fixtures.Must(Open())(t)
	all, err := library.GPUs()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	const readings = 200
	for name, read := range map[string]func() error{
		"memory":    func() error { _, err := all[0].Memory(); return err },
		"processes": func() error { _, err := all[0].Processes(); return err },
	} {
		begin := time.Now()
		for range readings {
			if err := read(); err != nil {
				t.Fatal(err)
			}
		}
		each := time.Since(begin) / readings
		t.Logf("%s: %v", name, each)
		if each > time.Millisecond {
			t.Errorf("a reading of %s takes %v", name, each)
		}
	}
	if err := library.Close(); err != nil {
		t.Error(err)
	}
}

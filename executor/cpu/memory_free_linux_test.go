package cpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

func TestLack(t *testing.T) {
	devices := []program.Device{{ID: 3, Arena: 100 << 20}, {ID: 5}, {ID: 4, Arena: 200 << 20}, {ID: 7, Arena: 1 << 20}}
	for _, test := range []struct {
		free int64
		want *executor.MemoryError
	}{
		{1 << 40, nil},
		{301<<20 + processReserve, nil},
		{301<<20 + processReserve - 1, &executor.MemoryError{Device: 7, Need: 301 << 20, Free: 301<<20 - 1, Place: "here"}},
		{200<<20 + processReserve, &executor.MemoryError{Device: 4, Need: 301 << 20, Free: 200 << 20, Place: "here"}},
		{processReserve, &executor.MemoryError{Device: 3, Need: 301 << 20, Free: 0, Place: "here"}},
		{-5, &executor.MemoryError{Device: 3, Need: 301 << 20, Free: 0, Place: "here"}},
	} {
		var got *executor.MemoryError
		errors.As(lack(devices, []hostmemory.FreeMemory{{Place: "elsewhere", Free: 1 << 50}, {Place: "here", Free: test.free}}), &got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%d free: -want +got\n%s", test.free, diff)
		}
	}
	if err := lack(devices, nil); err != nil {
		t.Errorf("no limit is known: %v", err)
	}
	many := make([]program.Device, 9)
	for i := range many {
		many[i].Arena = 1<<62 - 1
	}
	if err := lack(many, []hostmemory.FreeMemory{{Place: "here", Free: 1 << 40}}); err == nil {
		t.Error("nine arenas of 2^62 bytes find room")
	}
}

// limited runs a test of this binary again, under limits that it sets itself.
func limited(t *testing.T) (child bool) {
	t.Helper()
	const mark = "DEVMAP_TEST_LIMITED"
	if os.Getenv(mark) != "" {
		return true
	}
	run := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	run.Env = append(os.Environ(), mark+"=1")
	output, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

// TestAddressSpace: if a mapping fails the error says so, and the earlier ones are
// released. If the limit can be read, none is requested.
func TestAddressSpace(t *testing.T) {
	if !limited(t) {
		return
	}
	const arena = 1 << 30
	root := os.DirFS("/")
	before, _ := hostmemory.Field(root, "proc/self/status", "VmSize:")
	limit := unix.Rlimit{Cur: uint64(before<<10 + 5*arena/2), Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for device := range 4 {
		fmt.Fprintf(&text, "device %d arena %d budget %d\n", device, arena, arena)
	}
	bound := &bind.Bound{Program: parsed(t, text.String())}
	for _, test := range []struct {
		name   string
		limits func() []hostmemory.FreeMemory
		device int32
		place  string
	}{
		{"the limit is read", hostmemory.Limits, 2, "ulimit -v"},
		{"the limit is not known", func() []hostmemory.FreeMemory { return nil }, 2, "cannot allocate memory"},
	} {
		backend := &backend{reserve: reserve, release: release, limits: test.limits}
		made, err := backend.Open(context.Background(), bound)
		var lack *executor.MemoryError
		if made != nil || !errors.As(err, &lack) || lack.Device != test.device || lack.Need != 4*arena || lack.Free > 3*arena || !strings.Contains(err.Error(), test.place) {
			t.Errorf("%s: %v", test.name, err)
		}
		after, _ := hostmemory.Field(root, "proc/self/status", "VmSize:")
		if after > before+arena>>11 {
			t.Errorf("%s: %d kB are held, %d before", test.name, after, before)
		}
	}
}

// The process grows by its arenas, and shrinks again when they are closed.
func TestGrowth(t *testing.T) {
	if !limited(t) {
		return
	}
	const arena = 200 << 20
	program := parsed(t, fmt.Sprintf("device 0 arena %d budget %d\ndevice 1 arena %d budget %d\n", arena, arena, arena, arena))
	machine := opened(t, New(), program)
	if grown := machine.Growth(); grown < 2*arena-1<<20 || grown > 2*arena+16<<20 {
		t.Errorf("grown by %d, want %d", grown, 2*arena)
	}
	high, _, _ := resident()
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
	if low, _, _ := resident(); low > high-2*arena+16<<20 {
		t.Errorf("%d bytes are resident, %d before two arenas of %d were closed", low, high, arena)
	}
	if grown := machine.Growth(); grown < 2*arena-1<<20 { // the kernel counts pages a few at a time
		t.Errorf("grown by %d at most, want %d", grown, 2*arena)
	}
}

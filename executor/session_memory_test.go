package executor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// TestMemoryOfAll: every session's copy fits alone, and not all of them together.
func TestMemoryOfAll(t *testing.T) {
	t.Parallel()
	const text = "device 0 arena 4096 budget 4096\nbuffer 0 weights 0 +4096 weight\n0.0 compute load >weights\n0.1 compute unload weights\n"
	prog, err := program.Parse("by hand", []byte(text))
	if err == nil {
		err = prog.Check().Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	var sessions []*Session
	for range 3 {
		sessions = append(sessions, &Session{state: sessionState{bound: &bind.Bound{Program: prog}}})
	}
	host := func(free int64) []hostmemory.FreeMemory {
		return []hostmemory.FreeMemory{{Place: "here", Free: free + hostReserve}}
	}
	if at, err := checkMemoryIn(context.Background(), sessions, true, host(3*4096)); err != nil {
		t.Errorf("%d: %v", at, err)
	}
	at, err := checkMemoryIn(context.Background(), sessions, true, host(3*4096-1))
	if at != 2 || !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "takes 4.0 KiB and other copies 8.0 KiB") {
		t.Errorf("%d: %v", at, err)
	}
	if at, err := checkMemoryIn(context.Background(), sessions, false, host(0)); err != nil {
		t.Errorf("nothing is kept, and %d: %v", at, err)
	}
}

// TestHostLacks: the tightest limit of the host counts for all retained copies together,
// and something is left for everything else.
func TestHostLacks(t *testing.T) {
	t.Parallel()
	const unit = 1 << 30
	for _, test := range []struct {
		retained, others, free int64
		want                   string
	}{
		{unit, 0, unit + hostReserve, ""},
		{unit, 0, unit + hostReserve - 1, "its kept copy takes 1.00 GiB, and here has 1024.0 MiB free: out of memory; without --keep host every turn loads again"},
		{unit, 2 * unit, 3*unit + hostReserve, ""},
		{unit, 2 * unit, 2 * unit, "its kept copy takes 1.00 GiB and other copies 2.00 GiB, and here has 1.75 GiB free: out of memory; without --keep host every turn loads again"},
		{unit, 0, -1, "its kept copy takes 1.00 GiB, and here has 0 B free: out of memory; without --keep host every turn loads again"},
	} {
		err := hostLacks(test.retained, test.others, []hostmemory.FreeMemory{{Place: "elsewhere", Free: 1 << 50}, {Place: "here", Free: test.free}})
		if (err == nil) != (test.want == "") || err != nil && (err.Error() != test.want || !errors.Is(err, ErrMemory)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if err := hostLacks(unit, unit, nil); err != nil {
		t.Errorf("no limit is known: %v", err)
	}
}

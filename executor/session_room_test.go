package executor

import (
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/executor/internal/hostroom"
)

// TestHostLacks: copies that are kept are held to the tightest of what the host has,
// all of them together, and something is left for everything else.
func TestHostLacks(t *testing.T) {
	t.Parallel()
	const unit = 1 << 30
	for _, test := range []struct {
		kept, beside, free int64
		want               string
	}{
		{unit, 0, unit + atHand, ""},
		{unit, 0, unit + atHand - 1, "its copy that is kept takes 1.00 GiB, and here has 1024.0 MiB free: out of memory; without --keep host every turn loads anew"},
		{unit, 2 * unit, 3*unit + atHand, ""},
		{unit, 2 * unit, 2 * unit, "its copy that is kept takes 1.00 GiB beside the 2.00 GiB of others, and here has 1.75 GiB free: out of memory; without --keep host every turn loads anew"},
		{unit, 0, -1, "its copy that is kept takes 1.00 GiB, and here has 0 B free: out of memory; without --keep host every turn loads anew"},
	} {
		err := hostLacks(test.kept, test.beside, []hostroom.Room{{Place: "elsewhere", Free: 1 << 50}, {Place: "here", Free: test.free}})
		if (err == nil) != (test.want == "") || err != nil && (err.Error() != test.want || !errors.Is(err, ErrMemory)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if err := hostLacks(unit, unit, nil); err != nil {
		t.Errorf("no limit is known: %v", err)
	}
}

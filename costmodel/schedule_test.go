package costmodel

import (
	"errors"
	"testing"
)

// TestScheduleCheck: what torch's constructors refuse, with the nearest that they take.
func TestScheduleCheck(t *testing.T) {
	for _, c := range []struct {
		schedule     Schedule
		below, above int64
		batch        int64
		parts        string
	}{
		{Schedule{OneFOneB, 4, 1, 2, false, false}, 0, 4, 12, "4 does"},
		{Schedule{OneFOneB, 4, 1, 3, false, false}, 0, 4, 6, "6 does"},
		{Schedule{OneFOneB, 4, 1, 1, false, false}, 0, 4, 1, "batch=4 micro_batches=4 do"},
		{Schedule{OneFOneB, 4, 1, 1, false, false}, 0, 4, 3, "batch=4 micro_batches=4 do"},
		{Schedule{OneFOneB, 4, 1, 1, false, false}, 0, 4, 4_294_967_291, "4294967291 does"}, // a prime
		{Schedule{Interleaved, 4, 2, 9, false, false}, 8, 10, 9, "3 does"},
		{Schedule{Interleaved, 4, 2, 9, false, false}, 8, 10, 720, "8 and 10 do"},
		{Schedule{Interleaved, 4, 2, 13, false, false}, 12, 15, 156, "12 and 52 do"},
	} {
		var fault *scheduleError
		if err := c.schedule.Check(); !errors.As(err, &fault) || fault.Below != c.below || fault.Above != c.above || c.schedule.Parts(c.batch).String() != c.parts {
			t.Errorf("%+v of %d: %v (%s)", c.schedule, c.batch, err, c.schedule.Parts(c.batch))
		}
	}
	for _, schedule := range []Schedule{{GPipe, 4, 1, 1, false, false}, {OneFOneB, 4, 1, 4, false, false}, {Interleaved, 4, 2, 10, false, false}, {Interleaved, 4, 2, 3, false, false}} {
		if err := schedule.Check(); err != nil {
			t.Errorf("%+v: %v", schedule, err)
		}
	}
	for _, schedule := range []Schedule{{OneFOneB, 4, 1, 1, true, false}, {Interleaved, 4, 2, 9, true, false}, {GPipe, 4, 1, 3, true, false}} {
		if err := schedule.Check(); err != nil {
			t.Errorf("%+v: %v", schedule, err)
		}
	}
	const unknown = `schedule: "dual" is unknown (known: 1f1b, gpipe, interleaved, zb-h1, zbv, v-half, v-min)`
	for _, anyNumber := range []bool{false, true} {
		if err := (Schedule{"dual", 4, 1, 4, anyNumber, false}).Check(); err == nil || err.Error() != unknown {
			t.Errorf("%v, want %s", err, unknown)
		}
	}
}

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestFrontFaults: a front that contradicts itself is refused with its file and field.
func TestFrontFaults(t *testing.T) {
	const file = `{"format_version":"devmap.front/v1","complete":%s,"points":[%s]}`
	point := func(seconds, share, used float64) string {
		return fmt.Sprintf(`{"step_seconds":%v,"largest_share":%v,"devices":[{"capacity_bytes":1100,"reserved_bytes":100,"predicted":{"peak_allocated_bytes":%v}}]}`, seconds, share, used)
	}
	both := point(1, 0.5, 500) + "," + point(2, 0.25, 250)
	if _, points, err := planOfFront("front.json", fmt.Appendf(nil, file, "true", both)); err != nil || len(points) != 2 {
		t.Fatalf("%v, %d points", err, len(points))
	}
	for _, test := range []struct{ complete, points, want string }{
		{`"yes"`, both, `complete: missing, or neither true nor false`},
		{`true`, ``, `points: empty: a front has at least one point`},
		{`true`, `3`, `points: json: `},
		{`true`, point(1, 7, 500), `points[0].largest_share: 7, and the largest share of its budget that a device of "devices" has is 0.5`},
		{`true`, point(0, 0.5, 500), `points[0].step_seconds: 0 is not above 0`},
		{`true`, point(2, 0.25, 250) + "," + point(1, 0.5, 500), `points[1].step_seconds: 1 is not above 2, that of the point before`},
		{`true`, point(1, 0.5, 500) + "," + point(1, 0.5, 500), `points[1].step_seconds: 1 is not above 1, that of the point before`},
		{`true`, point(1, 0.5, 500) + "," + point(2, 0.5, 500), `points[1].largest_share: 0.5 is not below 0.5, that of the point before`},
	} {
		_, _, err := planOfFront("front.json", fmt.Appendf(nil, file, test.complete, test.points))
		if err == nil || !strings.HasPrefix(err.Error(), "front.json: "+test.want) {
			t.Errorf("%s\n%v, want %s", test.points, err, test.want)
		}
	}
}

// FuzzFront: any file is refused with an error or has a page's points, and no reader panics.
func FuzzFront(f *testing.F) {
	f.Add([]byte(`{"format_version":"devmap.front/v1","complete":true,"model":{},"points":[{"step_seconds":1,"largest_share":0,"devices":[]}]}`))
	f.Add([]byte(`{"format_version":"devmap.front/v1","points":[]}`))
	f.Add([]byte(`{"format_version":"devmap.front/v1","points":[{"devices":3}]}`))
	f.Add([]byte(`{"format_version":"devmap.plan/v1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, points, err := planOfFront("front.json", data)
		switch {
		case err != nil && (plan != nil || points != nil):
			t.Errorf("%v, and a plan", err)
		case err == nil && len(points) > 0 && !points[0].Chosen:
			t.Error("no point is chosen")
		}
		if err == nil {
			devicemap.ReadPlan("front.json", plan) //nolint:errcheck // it must not panic
		}
	})
}

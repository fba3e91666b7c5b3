package main

import (
	"testing"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// FuzzFront: any file is refused with an error or has a page's points, and no reader panics.
func FuzzFront(f *testing.F) {
	f.Add([]byte(`{"format_version":"devmap.front/v1","model":{},"points":[{"step_seconds":1,"largest_share":0.5,"devices":[]}]}`))
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

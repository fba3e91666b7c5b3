package main

import (
	"testing"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestFrontRefused: a front without maps, or with another value in their place, gets an error with
// the place.
func TestFrontRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"format_version":"devmap.front/v1"}`:                          "front.json: points: there is no map: write the file with devmap plan --objective front -o",
		`{"format_version":"devmap.front/v1","points":[]}`:              "front.json: points: there is no map: write the file with devmap plan --objective front -o",
		`{"format_version":"devmap.front/v1","points":[{"devices":3}]}`: "front.json: points[0].devices (line 1, column 58): cannot read number as array",
	} {
		if _, _, err := planOfFront("front.json", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

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

package watch

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	gpus := []GPU{{"GPU-aa", "H200", 100 << 30, false}, {"GPU-bb", "H200", 100 << 30, false}, {"GPU-cc", "L4", 22 << 30, true}}
	planned := func(runtime string, devices ...costmodel.Device) *devicemap.Plan {
		plan := new(devicemap.Plan)
		plan.Workload.Runtime = runtime
		for i := range devices {
			if devices[i].CapacityBytes == 0 {
				devices[i].CapacityBytes = 99 << 30
			}
			plan.Devices = append(plan.Devices, devicemap.Prediction{Device: i})
		}
		plan.Topology.Devices = devices
		return plan
	}
	some := costmodel.Device{Name: "h200"}
	for name, test := range map[string]struct {
		plan    *devicemap.Plan
		visible []int
		want    []Place
		notes   int
		fault   string
	}{
		"in order":         {planned("accelerate", some, some), []int{0, 1}, []Place{{0, 0, []int{0}}, {1, 1, []int{1}}}, 0, ""},
		"as they are seen": {planned("accelerate", some, some), []int{1, 0}, []Place{{1, 0, []int{0}}, {0, 1, []int{1}}}, 0, ""},
		"fewer":            {planned("accelerate", some, some), []int{1}, nil, 0, "the plan is for 2 GPUs, and the command sees fewer: GPU 0 (H200), by CUDA_VISIBLE_DEVICES, of the machine's 3"},
		"none":             {planned("accelerate", some), nil, nil, 0, "sees fewer: none, by"},
		"cut":              {planned("accelerate", some), []int{2}, nil, 0, "GPU 2 (L4, GPU-cc) is in MIG mode"},
		"another size":     {planned("accelerate", costmodel.Device{Name: "h100", CapacityBytes: 80 << 30}), []int{0}, []Place{{0, 0, []int{0}}}, 1, ""},
		"another one":      {planned("accelerate", costmodel.Device{GPU: "GPU-bb"}), []int{0}, []Place{{0, 0, []int{0}}}, 1, ""},
		"nothing":          {planned("torch"), []int{0}, nil, 0, "the plan predicts nothing"},
		"two machines":     {planned("torch", costmodel.Device{Host: "one"}, costmodel.Device{Host: "two"}), []int{0, 1}, nil, 0, "GPUs of 2 machines (one, two)"},
		"where it was measured": {
			planned("devmap", costmodel.Device{GPU: "GPU-bb"}, costmodel.Device{GPU: "GPU-bb"}), []int{0, 1}, []Place{{1, 1, []int{0, 1}}}, 0, "",
		},
	} {
		places, notes, err := Places(test.plan, gpus, test.visible)
		same := slices.EqualFunc(places, test.want, func(one, other Place) bool {
			return one.At == other.At && one.Number == other.Number && slices.Equal(one.Devices, other.Devices)
		})
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !same || len(notes) != test.notes || err != nil {
			t.Errorf("%s: %+v, %q, %v", name, places, notes, err)
		}
	}
}

// TestVisiblePlaces: without a plan each GPU that the command sees is a device.
func TestVisiblePlaces(t *testing.T) {
	gpus := []GPU{{Name: "A"}, {Name: "B"}, {Name: "C", Cut: true}}
	places, notes, err := Places(nil, gpus, []int{1, 0})
	want := []Place{{At: 1, Number: 0, Devices: []int{0}}, {At: 0, Number: 1, Devices: []int{1}}}
	if err != nil || len(notes) > 0 || !reflect.DeepEqual(places, want) {
		t.Errorf("%+v, %q, %v, not %+v", places, notes, err, want)
	}
	for _, visible := range [][]int{nil, {0, 2}} {
		if _, _, err := Places(nil, gpus, visible); err == nil {
			t.Errorf("%v: no error", visible)
		}
	}
}

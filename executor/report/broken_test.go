package report

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestBrokenOff: the report of a run that was aborted says what was predicted, the steps
// that ended and why, and measures nothing; another process reads it as it was.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	prediction, job, result := asPlanned()
	made := Foretell(prediction, job, "cuda", []executor.GPUResult{{GPU: 5, UUID: "GPU-5", Name: "H200", Devices: []int32{0, 1}, Before: 7, Ready: 9}})
	made.Steps = append(made.Steps, StepOf(&result.Steps[0], job))
	text := func(of *Report) []byte {
		var written bytes.Buffer
		if err := devicemap.WriteJSON(&written, of); err != nil {
			t.Fatal(err)
		}
		return written.Bytes()
	}
	read := new(Report)
	if err := json.Unmarshal(text(made), read); err != nil {
		t.Fatal(err)
	}
	read.BreakOff([]string{"in step 2 of 3: it was ended", "all was given back"})
	if read.Verdict != Fail || len(read.Reasons) != 2 || read.Backend != "cuda" || read.Plan != "plan.json" || *read.StepSeconds.Predicted != 0.25 || read.StepSeconds.Measured != nil {
		t.Errorf("%+v", read)
	}
	for i := range read.Devices {
		if device := &read.Devices[i]; device.Ratio != nil || len(device.Regions) != 0 || !reflect.DeepEqual(device.Predicted, prediction.Devices[i].Predicted) {
			t.Errorf("%+v", device)
		}
	}
	if gpu := &read.GPUs[0]; len(read.GPUs) != 1 || gpu.Measured != nil || gpu.DeviceUsedBytes != nil || gpu.UUID != "GPU-5" || !slices.Equal(gpu.Devices, []int{0, 1}) {
		t.Errorf("%+v", read.GPUs)
	}
	if len(read.Steps) != 1 || *read.Steps[0].Loss != 5.5 || read.Steps[0].Devices[1].Device != 1 {
		t.Errorf("%+v", read.Steps)
	}
	made.BreakOff(read.Reasons)
	if one, other := text(made), text(read); !bytes.Equal(one, other) {
		t.Errorf("%s\nis read as\n%s", one, other)
	}
}

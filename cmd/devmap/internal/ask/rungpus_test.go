package ask

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor"
)

// TestFaults: an unknown text is refused, and so is a number below 1. A backend's faults are left
// to the backend.
func TestFaults(t *testing.T) {
	for text, want := range map[string]Fault{
		"": {}, "kill@step:3": {KillStep, 3}, "kill@load:1": {KillLoad, 1}, "oom@map:2": {string(executor.FailMap), 2},
		"corrupt@path:9223372036854775807": {string(executor.CorruptPath), 1<<63 - 1}, "hang@step:1": {string(executor.HangStep), 1},
	} {
		if fault, err := parsed(t, "run", "--fault="+text).Run.FaultAsked(); fault != want || err != nil {
			t.Errorf("%q: %+v, %v", text, fault, err)
		}
	}
	for _, text := range []string{"oom", "oom@map", "oom@map:", "oom@map:0", "oom@map:-1", "oom@map:1:2", "oom@map:9223372036854775808", "kill@map:1", ":1", "hang@step:one"} {
		if fault, err := parsed(t, "run", "--fault="+text).Run.FaultAsked(); fault != (Fault{}) || err == nil {
			t.Errorf("%q: %+v, %v", text, fault, err)
		}
	}
}

// TestDevices: GPUs are numbers from 0, one for each device.
func TestDevices(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "0": {0}, "0,0,1, 1": {0, 0, 1, 1}, "07": {7}} {
		if gpus, err := parsed(t, "run", "--devices="+text).Run.Devices(); !slices.Equal(gpus, want) || err != nil {
			t.Errorf("%q: %v, %v", text, gpus, err)
		}
	}
	for _, text := range []string{",", "0,", "-1", "a", "0;1", "1.5", "9223372036854775808"} {
		if gpus, err := parsed(t, "run", "--devices="+text).Run.Devices(); err == nil {
			t.Errorf("%q: %v", text, gpus)
		}
	}
}

// TestGPUFlags: only a flag with a value other than its default asks for GPUs.
func TestGPUFlags(t *testing.T) {
	for want, words := range map[string][]string{
		"": {"--transport", "auto", "--devices", ""}, "--devices 0": {"--devices", "0"}, "--transport host": {"--transport", "host"}, "--fault oom@map:1": {"--fault", "oom@map:1"},
	} {
		if got := parsed(t, "run", words...).GPUFlags(); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

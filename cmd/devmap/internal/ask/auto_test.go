package ask_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
)

// asking returns the request of devmap plan --gpus auto with more flags.
func asking(t *testing.T, flags string) *ask.Request {
	t.Helper()
	cmd := &cobra.Command{Use: "plan MODEL"}
	request := ask.New(cmd)
	cmd.SetContext(t.Context())
	if err := cmd.ParseFlags(strings.Fields("--gpus auto " + flags)); err != nil {
		t.Fatal(err)
	}
	return request
}

// TestAuto: --gpus auto plans on the measured GPUs, and measures once for any number of plans. A
// proposed change prints the number of GPUs.
func TestAuto(t *testing.T) {
	request := asking(t, "--mode train --batch 64 --reserve 1GiB")
	measured := 0
	request.Probe = func() ([]byte, error) {
		measured++
		return []byte(`{"format_version": "devmap.topology/v1", "devices": [{"name": "rtx-4090", "gpu": "GPU-1", "capacity_bytes": 24000000000, "devmap": {"context_bytes": 5, "granule_bytes": 2, "flops": 1e14, "device_copy_bytes_per_second": 1, "host_to_device_bytes_per_second": 1, "device_to_host_bytes_per_second": 1}}]}`), nil
	}
	problem, err := request.Problem("llama-3.2-1b")
	if err != nil {
		t.Fatal(err)
	}
	device := &problem.Topology.Devices[0]
	if device.GPU != "GPU-1" || device.Own.FLOPS != 1e14 || device.ReservedBytes != 1<<30 || device.LinkBytesPerSecond == 0 || len(problem.Topology.Devices) != 1 {
		t.Errorf("%+v", device)
	}
	problem.Workload.Strategy = costmodel.DeviceMap
	changes := problem.Next(t.Context(), 9)
	if len(changes) == 0 {
		t.Fatal("nothing would help")
	}
	for i := range changes {
		if text := ask.ChangeText(&changes[i]); strings.Contains(text, "auto") {
			t.Errorf("%s", text)
		}
	}
	if measured != 1 {
		t.Errorf("measured %d times", measured)
	}
}

// TestAutoRefused: without a measurement there is no plan.
func TestAutoRefused(t *testing.T) {
	request := asking(t, "")
	if _, err := request.Problem("llama-3.2-1b"); err == nil || !strings.Contains(err.Error(), "--gpus auto: this build has no CUDA support") {
		t.Error(err)
	}
	request.Probe = func() ([]byte, error) { return nil, errors.New("no GPU") }
	if _, err := request.Problem("llama-3.2-1b"); err == nil || err.Error() != "--gpus auto: no GPU: --gpus N or --topology FILE plans without" {
		t.Error(err)
	}
	request.Probe = func() ([]byte, error) { return []byte("{}"), nil }
	if _, err := request.Problem("llama-3.2-1b"); err == nil || !strings.Contains(err.Error(), "devmap probe: format_version") {
		t.Error(err)
	}
}

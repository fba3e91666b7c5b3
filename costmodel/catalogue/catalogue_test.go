package catalogue

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestEntries holds every entry to having its figures, units that make sense
// and a source.
func TestEntries(t *testing.T) {
	for _, g := range load().GPUs {
		if g.CapacityBytes < 16<<30 || g.CapacityBytes > 512<<30 || g.ReservedBytes < 0 || g.ReservedBytes > 1<<30 {
			t.Errorf("%s: capacity %d, reserved %d", g.Name, g.CapacityBytes, g.ReservedBytes)
		}
		if g.BF16FLOPS < 1e13 || g.FP32FLOPS < 1e13 || g.FP32FLOPS > g.BF16FLOPS || g.BytesPerSecond < 1e11 || g.LinkBytesPerSecond < 1e10 || g.ComputeCapability == "" || g.Source == "" {
			t.Errorf("%s: incomplete: %+v", g.Name, g)
		}
		for _, mode := range []costmodel.Mode{costmodel.Load, costmodel.Infer, costmodel.Train} {
			if d := g.Device(mode); d.WorkspaceBytes < 8<<20 || d.ContextBytes < 256<<20 || d.Budget() <= 0 {
				t.Errorf("%s %s: %+v", g.Name, mode, d)
			}
		}
	}
	if _, err := Find("gtx-1"); err == nil {
		t.Error("gtx-1 is no entry")
	}
}

// TestContextByMode: training loads more kernels than inference; both sizes
// were measured on Hopper (gpus.json).
func TestContextByMode(t *testing.T) {
	gpu, err := Find("h100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	if train, infer := gpu.Device(costmodel.Train).ContextBytes, gpu.Device(costmodel.Infer).ContextBytes; train != 808255488 || infer != 730660864 {
		t.Errorf("a context of %d B in training, %d in inference", train, infer)
	}
}

// TestOwnContext: what devmap's own engine holds in addition to arenas replaces
// PyTorch's context if it was measured, and of nothing that a device says
// itself.
func TestOwnContext(t *testing.T) {
	for name, is := range map[string]struct {
		gpu, runtime string
		mode         costmodel.Mode
		said, want   int64 // said: by the device itself
	}{
		"Hopper in training":  {"h200-141gb", costmodel.Devmap, costmodel.Train, 0, 558694400},
		"Hopper in inference": {"h100-80gb", costmodel.Devmap, costmodel.Infer, 0, 558694400},
		"said by the device":  {"h100-80gb", costmodel.Devmap, costmodel.Train, 600 << 20, 600 << 20},
		"not measured":        {"a100-80gb", costmodel.Devmap, costmodel.Train, 0, 805306368},
		"PyTorch":             {"h100-80gb", "accelerate", costmodel.Train, 0, 808255488},
	} {
		gpu, err := Find(is.gpu)
		if err != nil {
			t.Fatal(err)
		}
		device := gpu.Device(is.mode)
		if is.said > 0 {
			device.ContextBytes = is.said
		}
		table := &costmodel.Table{Workload: costmodel.Workload{Mode: is.mode, Runtime: is.runtime, Strategy: costmodel.DeviceMap, World: 2}}
		table.Comm, table.BodySlack, table.HeadSlack, table.Followed = Overhead(&table.Workload)
		if got := table.Overhead(0, &device); got != is.want {
			t.Errorf("%s: %d bytes, want %d", name, got, is.want)
		}
	}
}

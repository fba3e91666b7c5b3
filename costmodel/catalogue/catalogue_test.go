package catalogue

import (
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestEntries checks every entry's figures, units and source. Rates are all published, or none is.
func TestEntries(t *testing.T) {
	for _, g := range load().GPUs {
		if g.CapacityBytes < 8<<30 || g.CapacityBytes > 512<<30 || g.ReservedBytes < 0 || g.ReservedBytes > 1<<30 {
			t.Errorf("%s: capacity %d, reserved %d", g.Name, g.CapacityBytes, g.ReservedBytes)
		}
		// A size is sold in GB of 2^30 bytes, or of 10^9 with more memory than that.
		usable := g.CapacityBytes - g.ReservedBytes
		if sold := g.SoldGB << 30; usable > sold || 100*usable < 89*sold {
			t.Errorf("%s: sold as %d GB, and %d bytes can be used", g.Name, g.SoldGB, usable)
		}
		if _, size, named := strings.Cut(g.Name, "-"+strconv.FormatInt(g.SoldGB, 10)); named && size != "gb" {
			t.Errorf("%s: sold as %d GB", g.Name, g.SoldGB)
		}
		if g.ComputeCapability == "" || !strings.Contains(g.Source, "capacity: ") || !strings.Contains(g.Source, "rates: ") {
			t.Errorf("%s: incomplete: %+v", g.Name, g)
		}
		checkRates(t, &g)
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

// checkRates checks the order of a GPU's rates. Compute capability 7 has fp16's instead of bf16's.
func checkRates(t *testing.T, g *GPU) {
	t.Helper()
	if g.flops() == 0 {
		if g.FP32FLOPS != 0 || g.BytesPerSecond != 0 || g.LinkBytesPerSecond != 0 || g.Device(costmodel.Infer).FLOPS != 0 {
			t.Errorf("%s: some rates are published, and not those of tensor cores", g.Name)
		}
		return
	}
	if g.flops() < 1e13 || g.FP32FLOPS < 5e12 || g.FP32FLOPS > g.flops() || g.BytesPerSecond < 1e11 || g.LinkBytesPerSecond < 1e10 {
		t.Errorf("%s: rates: %+v", g.Name, g)
	}
	if old := strings.HasPrefix(g.ComputeCapability, "7."); old != (g.FP16FLOPS > 0) || old == (g.BF16FLOPS > 0) {
		t.Errorf("%s of compute capability %s: bf16 %g, fp16 %g", g.Name, g.ComputeCapability, g.BF16FLOPS, g.FP16FLOPS)
	}
}

// TestCapacities compares capacities with public reports.
func TestCapacities(t *testing.T) {
	for name, gib := range map[string]float64{
		"v100-16gb": 15.78, "v100-32gb": 31.74, "t4-16gb": 14.56, "rtx-2080-ti": 10.76, "rtx-5090": 31.37, "rtx-a6000": 47.40,
		"rtx-3060-12gb": 11.75, "rtx-4080": 16049.0 / 1024, "rtx-5080": 16303.0 / 1024, "b300-288gb": 275040.0 / 1024, "mi250x-64gb": 65520.0 / 1024,
		"rtx-6000-ada": 44.43, "rtx-pro-6000": 94.97, "l20-48gb": 44.53, "a800-80gb": 79.33, "gh200-96gb": 94.50, "mi325x-256gb": 255.98,
	} {
		gpu := fixtures.Must(Find(name))(t)
		if off := float64(gpu.CapacityBytes) - gib*(1<<30); off > 0 || off < -1 {
			t.Errorf("%s: %d bytes, want %g GiB", name, gpu.CapacityBytes, gib)
		}
	}
}

// TestContextByMode: training loads more kernels than inference, as measured on Hopper (gpus.json).
func TestContextByMode(t *testing.T) {
	gpu := fixtures.Must(Find("h100-80gb"))(t)
	if train, infer := gpu.Device(costmodel.Train).ContextBytes, gpu.Device(costmodel.Infer).ContextBytes; train != 808255488 || infer != 730660864 {
		t.Errorf("a context of %d B in training, %d in inference", train, infer)
	}
}

// TestOwnContext: devmap's own measured context replaces PyTorch's, but not one that a device
// states.
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
		gpu := fixtures.Must(Find(is.gpu))(t)
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

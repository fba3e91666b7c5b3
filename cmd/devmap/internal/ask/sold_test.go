package ask

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestSoldAs: a size that GPUs are sold as gives the memory of the smallest of them. GPUs with ECC
// codes count only if there are no others.
func TestSoldAs(t *testing.T) {
	for text, want := range map[string]struct {
		gib  float64 // 0 if no GPU is sold as this size
		like string
	}{
		"48GB": {47.40, "rtx-a6000"}, "48 gb": {47.40, "rtx-a6000"}, "24GB": {23.58, "rtx-4090"}, "80GB": {79.15, "a100-80gb"},
		"16GB": {15.45, "rtx-5080"}, "32GB": {31.37, "rtx-5090"}, "96GB": {94.50, "gh200-96gb"}, "141GB": {139.80, "h200-141gb"}, "11GB": {10.76, "rtx-2080-ti"},
		"20GB": {}, "48GiB": {}, "48": {}, "48G": {}, "47.5GB": {}, "048GB": {}, "": {}, "GB": {}, "99999999999GB": {},
	} {
		bytes, like := soldAs(text)
		if like != want.like || math.Abs(float64(bytes)/(1<<30)-want.gib) > 0.01 {
			t.Errorf("%q: %.2f GiB of %q, want %v", text, float64(bytes)/(1<<30), like, want)
		}
	}
}

// TestSoldSizes: --gpus takes such sizes, and a note explains them; sizes in GiB are exact.
func TestSoldSizes(t *testing.T) {
	for gpus, want := range map[string]struct {
		bytes []int64
		notes int // the number of notes with "sold as"
	}{
		"2x48GB":          {[]int64{50895362457, 50895362457}, 1},
		"48GB,48GiB":      {[]int64{50895362457, 48 << 30}, 1},
		"24GB,48GB":       {[]int64{25318832046, 50895362457}, 2},
		"2x48GiB":         {[]int64{48 << 30, 48 << 30}, 0},
		"20GB":            {[]int64{20e9}, 0},
		"48000000000,2TB": {[]int64{48e9, 2e12}, 0},
	} {
		request := parsed(t, "plan", "--gpus", gpus)
		if err := request.normalise(); err != nil {
			t.Fatal(err)
		}
		topology := fixtures.Must(request.devices(costmodel.Infer, 0))(t)
		var got []int64
		for i := range topology.Devices {
			got = append(got, topology.Devices[i].CapacityBytes)
		}
		notes := 0
		for _, note := range request.DeviceNotes(topology) {
			if strings.Contains(note, "sold as") {
				notes++
			}
		}
		if !slices.Equal(got, want.bytes) || notes != want.notes {
			t.Errorf("--gpus %s: %d bytes and %d notes, want %d and %d", gpus, got, notes, want.bytes, want.notes)
		}
	}
}

// TestGPUNamed: common names of a GPU, and the nearest name for an unknown one.
func TestGPUNamed(t *testing.T) {
	for name, want := range map[string]string{
		"A6000": "rtx-a6000", "NVIDIA RTX A6000": "rtx-a6000", "5090": "rtx-5090", "RTX 2080 Ti": "rtx-2080-ti", "4060ti": "rtx-4060-ti-16gb", "t4": "t4-16gb",
		"Tesla T4": "t4-16gb", "MI300X": "mi300x-192gb", "AMD Instinct MI250X": "mi250x-64gb", "h20": "h20-96gb", "RTX 6000 Ada": "rtx-6000-ada", "RTX PRO 6000": "rtx-pro-6000", "GH200": "gh200-96gb",
		// These are names of nvidia-smi and torch.
		"NVIDIA A100-SXM4-80GB": "a100-80gb", "NVIDIA A100-SXM4-40GB": "a100-40gb", "NVIDIA A100-PCIE-40GB": "a100-40gb", "A100-PCIE-40GB": "a100-40gb", "NVIDIA A100 80GB PCIe": "a100-80gb",
		"NVIDIA H100 80GB HBM3": "h100-80gb", "NVIDIA H200": "h200-141gb", "NVIDIA H200 NVL": "h200-141gb", "NVIDIA B200": "b200-180gb", "NVIDIA GH200 480GB": "gh200-96gb",
		"Tesla V100-SXM2-16GB": "v100-16gb", "Tesla V100-SXM2-32GB": "v100-32gb", "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada", "NVIDIA A10G": "a10g-24gb", "NVIDIA L4": "l4-24gb",
		"NVIDIA L40S": "l40s-48gb", "NVIDIA GeForce RTX 3090": "rtx-3090", "NVIDIA GeForce RTX 4090": "rtx-4090", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000",
	} {
		if got, err := gpuNamed(name); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %s", name, got, err, want)
		}
	}
	for name, near := range map[string]string{"NVIDIA GeForce RTX 4090 D": "did you mean rtx-4090?", "NVIDIA H100 PCIe": "h100-80gb or h100-96gb?", "4080-super": "did you mean rtx-4080?", "v100": "v100-16gb or v100-32gb?", "rtx 6000": "rtx-6000-ada or rtx-pro-6000?", "h10-80gb": "did you mean h100-80gb?", "mi300": "did you mean mi300x-192gb?", "x\n$(y)": `"x\n$(y)" is unknown`} {
		got, err := gpuNamed(name)
		if err == nil {
			if name != "mi300" || got != "mi300x-192gb" { // a part of one name
				t.Errorf("%q is %s", name, got)
			}
			continue
		}
		if !strings.Contains(err.Error(), near) || !strings.Contains(err.Error(), "--gpus 4x48GiB") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", name, err, near)
		}
	}
}

// TestHardwareNotes: notes for bf16 without hardware units, for unpublished rates, and for GPUs of
// makers without measurements.
func TestHardwareNotes(t *testing.T) {
	for _, is := range []struct {
		gpu  string
		work costmodel.Workload
		want []string
	}{
		{"t4-16gb", costmodel.Workload{Precision: costmodel.BF16True}, []string{"--precision 16-true"}},
		{"v100-32gb", costmodel.Workload{Precision: costmodel.BF16True, Mode: costmodel.Train}, []string{"--precision 16-mixed"}},
		{"t4-16gb", costmodel.Workload{Precision: costmodel.FP16True}, nil},
		{"rtx-2080-ti", costmodel.Workload{Precision: costmodel.FP16True}, []string{"no step time"}},
		{"rtx-2080-ti", costmodel.Workload{Precision: costmodel.BF16True, Mode: costmodel.Load}, []string{"--precision 16-true"}},
		{"l20-48gb", costmodel.Workload{Precision: costmodel.BF16True}, []string{"no step time"}},
		{"l20-48gb", costmodel.Workload{Precision: costmodel.BF16True, Mode: costmodel.Load}, nil},
		{"mi300x-192gb", costmodel.Workload{Precision: costmodel.BF16True}, []string{"measured on AMD's"}},
		{"h100-80gb", costmodel.Workload{Precision: costmodel.BF16True}, nil},
	} {
		gpu := fixtures.Must(catalogue.Find(is.gpu))(t)
		device := gpu.Device(costmodel.Infer)
		notes := HardwareNotes(&costmodel.Topology{Devices: []costmodel.Device{device, device}}, &is.work)
		if len(notes) != len(is.want) || len(notes) > 0 && !strings.Contains(notes[0], is.want[0]) {
			t.Errorf("%s: %q, want %q", is.gpu, notes, is.want)
		}
	}
}

// TestGPUsHints: a count under --gpu and a name under --gpus get a hint at the other flag.
func TestGPUsHints(t *testing.T) {
	if _, err := gpuNamed("2"); err == nil || err.Error() != "--gpu 2 is a count, not the name of a GPU: write --gpus 2" {
		t.Errorf("%v", err)
	}
	for gpus, want := range map[string]string{
		"rtx-4090": "--gpus 1 --gpu rtx-4090", "h100": "--gpus 1 --gpu h100-80gb or h100-96gb", "NVIDIA L4,NVIDIA L4": "--gpus 2 --gpu l4-24gb",
		"nothing": "it is neither a count nor a list of capacities", "80GiB,x4": `"x4" is not a size`,
	} {
		asked := &GPUs{gpus: gpus}
		if _, err := asked.capacities(costmodel.Device{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--gpus %s: %v, want %s", gpus, err, want)
		}
	}
}

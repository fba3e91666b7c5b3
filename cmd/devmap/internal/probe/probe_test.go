package probe

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/nvml"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestKindOf: a driver's name and size give a GPU of the catalogue, or none.
func TestKindOf(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		name  string
		total int64
		want  string
	}{
		{"NVIDIA H100 80GB HBM3", 85520809984, "h100-80gb"},
		{"NVIDIA H100 NVL", 100485038080, "h100-96gb"},
		{"NVIDIA H200", 150754820096, "h200-141gb"},
		{"NVIDIA A100-SXM4-40GB", 42949672960, "a100-40gb"},
		{"NVIDIA A100-SXM4-80GB", 85899345920, "a100-80gb"},
		{"NVIDIA H100 80GB HBM3", 10 << 30, ""},
		{"NVIDIA TITAN V", 12 << 30, ""},
		{"NVIDIA GeForce RTX 4090", 25757220864, "rtx-4090"},
		{"NVIDIA GeForce RTX 3090", 25769803776, "rtx-3090"},
		{"NVIDIA GeForce RTX 4060 Ti", 16380 << 20, "rtx-4060-ti-16gb"},
		{"NVIDIA GeForce RTX 4060 Ti", 8188 << 20, ""},
		{"NVIDIA GeForce RTX 5070 Ti", 16303 << 20, ""},
		{"NVIDIA RTX 6000 Ada Generation", 46068 << 20, "rtx-6000-ada"},
		{"NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887 << 20, "rtx-pro-6000"},
		{"Tesla V100-SXM2-16GB", 16384 << 20, "v100-16gb"},
	} {
		if got := kindOf(is.name, is.total); got != is.want {
			t.Errorf("%s of %d bytes is %q, want %q", is.name, is.total, got, is.want)
		}
	}
}

// TestProbeJobs: the models of a probe have a program for any number of devices of a machine. Every
// kernel of their steps counts in one kind.
func TestProbeJobs(t *testing.T) {
	t.Parallel()
	known := fixtures.Must(catalogue.Find("h100-80gb"))(t)
	for _, devices := range []int{1, 2, 4, 8} {
		topology := &costmodel.Topology{}
		for range devices {
			topology.Devices = append(topology.Devices, known.Device(costmodel.Train))
		}
		workload := costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.BF16True, Batch: int64(devices), MicroBatches: int64(devices), Seq: 512}
		job := fixtures.Must(probeJob(usageModel(max(2, devices)), workload, topology))(t)
		if err := job.Program.Check().Err(); err != nil || len(job.Program.Devices) != devices {
			t.Errorf("%d devices, of %d: %v", len(job.Program.Devices), devices, err)
		}
	}
	wide, products := fixtures.Must(probeJob(wideModel, timed(costmodel.Infer, costmodel.BF16True, wideBatch), &costmodel.Topology{Devices: []costmodel.Device{known.Device(costmodel.Infer)}}))(t), 0.
	for i := range wide.Recipe.Units {
		products += wide.Recipe.Units[i].Code.Forward.Work.Products
	}
	if products != wideProducts {
		t.Errorf("%v FLOPs of products in a forward, not %v", products, wideProducts)
	}
	if got := (&tally{products: work{8e14, 1}}).settling(); got != int64(3*8e14/products) {
		t.Errorf("%d forwards", got)
	}
	for _, mode := range []costmodel.Mode{costmodel.Infer, costmodel.Train} {
		part, steps := timed(mode, costmodel.BF16True, wideBatch), int64(10)
		for range 2 {
			steps = halved(&part, steps)
		}
		if sequences := part.Batch * steps; part.Batch != 1 || mode == costmodel.Infer && sequences != 10*wideBatch || mode == costmodel.Train && steps != 10 {
			t.Errorf("%s: %d steps of %d sequences", mode, steps, part.Batch)
		}
	}
	for _, config := range timedModels {
		job := fixtures.Must(probeJob(config, costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.FP32True, Batch: 1, MicroBatches: 1, Seq: 2048}, &costmodel.Topology{Devices: []costmodel.Device{known.Device(costmodel.Train)}}))(t)
		optimizer := updating(job.Recipe)
		for i := range job.Recipe.Units {
			code := job.Recipe.Units[i].Code
			for _, kernel := range append(code.Forward.Kernels, code.Backward.Kernels...) {
				if optimizer[kernel.Name] {
					t.Errorf("%s is the optimizer's and a pass's", kernel.Name)
				}
			}
		}
	}
}

// TestTally: kernels add up by kind, and the gaps between them belong to no kernel.
func TestTally(t *testing.T) {
	t.Parallel()
	one := &timing{updating: map[string]bool{"adamw": true}}
	for _, timed := range []executor.KernelTime{
		{Kernel: &recipe.Kernel{Name: "gemm", Products: 6e12, Bytes: 1}, Took: 10 * time.Millisecond},
		{Kernel: &recipe.Kernel{Name: "gemm", Products: 2e12, Bytes: 1}, Took: 10 * time.Millisecond},
		{Kernel: &recipe.Kernel{Name: "attention", Attention: 4e11, Bytes: 1}, Took: time.Millisecond},
		{Kernel: &recipe.Kernel{Name: "norm", Bytes: 3e9}, Took: time.Millisecond},
		{Kernel: &recipe.Kernel{Name: "adamw", Bytes: 5e9}, Took: 2 * time.Millisecond},
	} {
		one.tell(timed)
	}
	measured := &tallies{single: tally{products: work{6e13, 1}, updates: work{1e12, 1}}, sustained: tally{products: work{7e14, 2}}}
	measured.half.gaps = 10e-6
	for range 2 {
		measured.half.add(&one.tally, 2)
	}
	flops, rates := ratesOf(measured)
	want := costmodel.Rates{AttentionFLOPS: 4e14, BytesPerSecond: 3e12, UpdateBytesPerSecond: 2.5e12, FP32FLOPS: 6e13, FP32UpdateBytesPerSecond: 1e12, KernelSeconds: 2e-6}
	if math.Abs(flops/4e14-1) > 1e-9 || math.Abs(rates.AttentionFLOPS/want.AttentionFLOPS-1) > 1e-9 || math.Abs(rates.BytesPerSecond/want.BytesPerSecond-1) > 1e-9 ||
		math.Abs(rates.UpdateBytesPerSecond/want.UpdateBytesPerSecond-1) > 1e-9 || rates.FP32FLOPS != want.FP32FLOPS || rates.SustainedFLOPS != 3.5e14 || math.Abs(rates.KernelSeconds/want.KernelSeconds-1) > 1e-9 {
		t.Errorf("%v, %+v; want %+v", flops, rates, want)
	}
	if math.Abs(one.now-0.024) > 1e-12 || one.kernels != 5 || one.passes != 4 || measured.half.kernels != 5 || measured.half.passes != 4 {
		t.Errorf("%+v", one)
	}
}

// TestApart: kernels of two sizes give their rate and their fixed time. If that is impossible, the
// rate is the larger kernels'.
func TestApart(t *testing.T) {
	t.Parallel()
	ten := func(amount float64) work { return work{amount, amount/4e14 + 10*3e-6} } // ten kernels
	measured := &tallies{half: tally{products: ten(8e12), passes: 10, kernels: 12, gaps: 12e-7}, less: tally{products: ten(2e12), passes: 10, kernels: 12}}
	flops, rates := ratesOf(measured)
	if math.Abs(flops/4e14-1) > 1e-9 || math.Abs(rates.KernelSeconds/3.1e-6-1) > 1e-9 || rates.AttentionFLOPS != 0 || rates.BytesPerSecond != 0 {
		t.Errorf("%v, %+v", flops, rates)
	}
	for _, less := range []work{{}, {8e12, 0.02}, {2e12, 0.03}, {2e12, 0.001}} {
		of := work{8e12, 0.02}
		if rate, fixed := of.apart(&less); rate != 4e14 || fixed != 0 {
			t.Errorf("%+v: %v, %v", less, rate, fixed)
		}
	}
}

// halves returns a probe of two devices on one GPU.
func halves() *probe {
	counted := &tally{products: work{7e14, 1}, attention: work{4e14, 1}, others: work{2e12, 1}, updates: work{2.5e12, 1}, gaps: 1e-3, kernels: 1000, passes: 900}
	path := executor.PathRates{Granule: 2 << 20, Inside: 1.2e12, Up: 5e10, Down: 4e10, To: []executor.PathRate{{}, {BytesPerSecond: 1.1e12, Latency: 5e-6}}}
	back := path
	back.To = []executor.PathRate{path.To[1], {}}
	probe := &probe{
		gpus: []executor.GPU{{}, {Name: "NVIDIA H100 80GB HBM3", UUID: "GPU-1", Capability: "9.0"}}, devices: []int{1, 1},
		memory: map[int]nvml.Memory{1: {Total: 85520809984, Reserved: 500 << 20, Used: 101, Free: 1}},
		others: map[int][]nvml.Process{1: {{ID: 7, Used: 100}, {ID: 8, Used: -1}}},
		used:   map[int]int64{1: 558694401}, rates: map[int]*tallies{1: {half: *counted, single: *counted, sustained: tally{products: work{6e14, 1}}}}, paths: []executor.PathRates{path, back},
	}
	for range probe.devices {
		probe.known = append(probe.known, catalogued(&probe.gpus[1], 85520809984))
	}
	return probe
}

// TestProbedTopology: a probe's topology can be read, and the shares of a GPU add up to the whole.
// Only devmap's engine uses it.
func TestProbedTopology(t *testing.T) {
	t.Parallel()
	var document bytes.Buffer
	if err := halves().write(&document); err != nil {
		t.Fatal(err)
	}
	known := fixtures.Must(catalogue.Find("h100-80gb"))(t)
	topology, err := costmodel.ParseTopology("probed.json", document.Bytes(), func(name string) costmodel.Device {
		if name != "h100-80gb" {
			t.Errorf("the name is %q", name)
		}
		return known.Device(costmodel.Train)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, device := range topology.Devices {
		if device.CapacityBytes != 42760404992 || device.ReservedBytes != 252<<20+50 || device.GPU != "GPU-1" || device.ContextBytes != known.Device(costmodel.Train).ContextBytes {
			t.Errorf("%+v", device)
		}
		if own := device.Own; own.ContextBytes != 279347201 || own.GranuleBytes != 2<<20 || own.FLOPS != 7e14 || own.BytesPerSecond != 2e12 || own.KernelSeconds != 1e-6 || own.HostToDeviceBytesPerSecond != 5e10 {
			t.Errorf("%+v", own)
		}
		if seconds := topology.SendSeconds(i, 1-i, 1.1e12); seconds != 1+5e-6 {
			t.Errorf("a message takes %v s", seconds)
		}
	}
}

// TestProbeTable: the table has the memory of other processes and their numbers.
func TestProbeTable(t *testing.T) {
	t.Parallel()
	text := halves().table()
	for _, want := range []string{"NVIDIA H100 80GB HBM3", "79.65 GiB", "the driver 500.0 MiB, process 7 100 B, process 8 an unknown size", "532.8 MiB", "700", "1 → 1", "1100", "1.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestRepeatedWeights: a probe's weights have the shapes of random weights, and similar values.
func TestRepeatedWeights(t *testing.T) {
	t.Parallel()
	graph := fixtures.Must(hf.FromConfig("probe", []byte(usageModel(2))))(t)
	source, random := repeatedWeights(graph), weights.Random(graph, 1)
	for _, name := range []string{"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight", "model.norm.weight"} {
		for _, dtype := range []modelgraph.DType{modelgraph.BF16, modelgraph.F32} {
			var all, other []byte
			err := errors.Join(
				source.Stream(t.Context(), name, dtype, func(chunk []byte) error { all = append(all, chunk...); return nil }),
				random.Stream(t.Context(), name, dtype, func(chunk []byte) error { other = append(other, chunk...); return nil }))
			if err != nil || len(all) != len(other) {
				t.Errorf("%s: %v, %d bytes, want %d", name, err, len(all), len(other))
				continue
			}
			const sample = 1 << 12
			if same := bytes.Equal(all[:sample], other[:sample]); same != (name != "model.layers.1.mlp.up_proj.weight") {
				t.Errorf("%s begins like what is drawn: %v", name, same)
			}
		}
	}
	if err := source.Stream(t.Context(), "no.such", modelgraph.BF16, func([]byte) error { return nil }); err == nil {
		t.Error("there are weights of no name")
	}
}

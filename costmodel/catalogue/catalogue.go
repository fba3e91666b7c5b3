// Package catalogue contains figures of GPUs and of engines on them, as embedded data (gpus.json).
// Each figure has its source and the hardware it was measured on.
package catalogue

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
)

// GPU is one entry: sizes in bytes, rates in bytes/s and FLOP/s (dense), as the
// data sheet has them. One without a known source is 0.
type GPU struct {
	Name string `json:"name"`
	// SoldGB is the advertised size. ECCTakesMemory: the driver shows less, as ECC codes take memory.
	SoldGB         int64   `json:"sold_gb"`
	ECCTakesMemory bool    `json:"ecc_takes_memory"`
	CapacityBytes  int64   `json:"capacity_bytes"` // as the driver shows it
	ReservedBytes  int64   `json:"reserved_bytes"`
	BF16FLOPS      float64 `json:"bf16_flops,omitzero"`
	// FP16FLOPS is in the place of BF16FLOPS on a GPU without units for bf16.
	FP16FLOPS float64 `json:"fp16_flops,omitzero"`
	FP32FLOPS float64 `json:"fp32_flops,omitzero"` // without TF32
	// SustainedFLOPS and MemoryPower are those of [costmodel.Rates], as measured.
	SustainedFLOPS     float64 `json:"sustained_flops,omitzero"`
	MemoryPower        float64 `json:"memory_power,omitzero"`
	BytesPerSecond     float64 `json:"bytes_per_second,omitzero"`
	LinkBytesPerSecond float64 `json:"link_bytes_per_second,omitzero"`
	// PinnedBytesPerSecond is copied from and to pinned memory of the host, each way.
	PinnedBytesPerSecond float64 `json:"pinned_bytes_per_second,omitzero"`
	ComputeCapability    string  `json:"compute_capability"`
	Source               string  `json:"source"`
}

type contextSize struct {
	TrainBytes int64  `json:"train_bytes"`
	InferBytes int64  `json:"infer_bytes"`
	Source     string `json:"source"`
}

func (size contextSize) of(mode costmodel.Mode) int64 {
	if mode == costmodel.Train {
		return size.TrainBytes
	}
	return size.InferBytes
}

type data struct {
	GPUs       []GPU                  `json:"gpus"`
	Workspaces map[string]figure      `json:"workspaces"`
	Context    map[string]contextSize `json:"context"`
	OwnContext map[string]figure      `json:"own_context"`
	JAXContext map[string]figure      `json:"jax_context"`
	Matmul     figure                 `json:"matmul"`
	Attention  map[string]figure      `json:"attention"`
	Unaligned  map[string]figure      `json:"unaligned"`
	Memory     figure                 `json:"memory"`
	Strided    figure                 `json:"strided"`
	Update     figure                 `json:"update"`
	FP32Update figure                 `json:"fp32_update"`
	Link       figure                 `json:"link"`
	Collective map[string]figure      `json:"collective"`
	Kernel     figure                 `json:"kernel"`
	Decode     map[string]figure      `json:"decode"`
	Issue      figure                 `json:"issue"`
	IssueBack  figure                 `json:"issue_backward"`
	IssueShard figure                 `json:"issue_sharded"`
	CPUCopy    figure                 `json:"cpu_copy"`
}

// figure is a constant with its source, and with the fields of its kind.
type figure struct {
	Bytes          int64   `json:"bytes,omitzero"`
	BytesPerSecond float64 `json:"bytes_per_second,omitzero"`
	Efficiency     float64 `json:"efficiency,omitzero"`  // of a data sheet's rate, as achieved
	Share          float64 `json:"share,omitzero"`       // of the device's processors
	Overlapped     float64 `json:"beside,omitzero"`      // as Efficiency, while kernels run
	Seconds        float64 `json:"seconds,omitzero"`     // that each call takes in addition
	RowSeconds     float64 `json:"row_seconds,omitzero"` // and each row of devmap's operations in decode steps
	Source         string  `json:"source"`
}

//go:embed gpus.json
var raw []byte

var load = sync.OnceValue(func() data { return read[data](raw) })

// read parses embedded data.
func read[T any](raw []byte) (out T) {
	if err := json.Unmarshal(raw, &out, json.RejectUnknownMembers(true)); err != nil {
		panic("catalogue: " + err.Error()) // a build fault
	}
	return out
}

// Names lists the GPUs.
func Names() []string {
	var names []string
	for _, gpu := range load().GPUs {
		names = append(names, gpu.Name)
	}
	return names
}

// Find returns a GPU by its name.
func Find(name string) (GPU, error) {
	gpus := load().GPUs
	i := slices.IndexFunc(gpus, func(gpu GPU) bool { return strings.EqualFold(gpu.Name, name) })
	if i < 0 {
		return GPU{}, fmt.Errorf("unknown GPU %q (known: %s)", name, strings.Join(Names(), ", "))
	}
	return gpus[i], nil
}

// flops is the rate of 16-bit matrix products, 0 if it is not published.
func (gpu *GPU) flops() float64 { return max(gpu.BF16FLOPS, gpu.FP16FLOPS) }

// Device is a GPU with the engine's constants for one mode.
func (gpu *GPU) Device(mode costmodel.Mode) costmodel.Device {
	device := costmodel.Device{
		Name: gpu.Name, CapacityBytes: gpu.CapacityBytes, ReservedBytes: gpu.ReservedBytes,
		ComputeCapability: gpu.ComputeCapability,
		WorkspaceBytes:    forCapability(load().Workspaces, gpu.ComputeCapability).Bytes,
	}
	device.ContextBytes = forCapability(load().Context, gpu.ComputeCapability).of(mode)
	device.FLOPS = gpu.flops() * load().Matmul.Efficiency
	ring := forCapability(load().Collective, gpu.ComputeCapability)
	device.Rates = costmodel.Rates{
		FP32FLOPS:                gpu.FP32FLOPS * load().Matmul.Efficiency,
		SustainedFLOPS:           gpu.SustainedFLOPS,
		MemoryPower:              gpu.MemoryPower,
		AttentionFLOPS:           gpu.flops() * forCapability(load().Attention, gpu.ComputeCapability).Efficiency,
		BytesPerSecond:           gpu.BytesPerSecond * load().Memory.Efficiency,
		UnalignedFLOPS:           gpu.flops() * forCapability(load().Unaligned, gpu.ComputeCapability).Efficiency,
		StridedBytesPerSecond:    gpu.BytesPerSecond * load().Strided.Efficiency,
		UpdateBytesPerSecond:     gpu.BytesPerSecond * load().Update.Efficiency,
		FP32UpdateBytesPerSecond: gpu.BytesPerSecond * load().FP32Update.Efficiency,
		KernelSeconds:            load().Kernel.Seconds,
		OperationSeconds:         forCapability(load().Decode, gpu.ComputeCapability).Seconds,
		RowSeconds:               forCapability(load().Decode, gpu.ComputeCapability).RowSeconds,
		IssueSeconds:             load().Issue.Seconds,
		BackwardIssueSeconds:     load().IssueBack.Seconds,
		ShardedIssueSeconds:      load().IssueShard.Seconds,
		LinkBytesPerSecond:       gpu.LinkBytesPerSecond * load().Link.Efficiency,
		CollectiveBytesPerSecond: gpu.LinkBytesPerSecond * ring.Efficiency,
		OverlappedBytesPerSecond: gpu.LinkBytesPerSecond * ring.Overlapped,
		CollectiveShare:          ring.Share,
		CollectiveSeconds:        ring.Seconds,
		CPUBytesPerSecond:        load().CPUCopy.BytesPerSecond,
	}
	return device
}

// forCapability is the entry of a compute capability, or the default.
func forCapability[T any](by map[string]T, capability string) T {
	if found, ok := by[capability]; ok {
		return found
	}
	return by["default"]
}

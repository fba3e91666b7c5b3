package costmodel

import (
	"fmt"
	"reflect"
	"strings"
)

// Rates are a device's achieved speeds, other than of 16-bit matrix products. 0: unknown.
type Rates struct {
	// FP32FLOPS is the rate of fp32 matrix products without TF32, in FLOP/s.
	FP32FLOPS float64 `json:"fp32_flops,omitzero"`
	// UnalignedFLOPS is the rate of 16-bit products with rows that do not fill whole 16 bytes,
	// which the tensor memory accelerator cannot load.
	UnalignedFLOPS float64 `json:"unaligned_flops,omitzero"`
	// SustainedFLOPS is the rate of 16-bit products after seconds of nothing else, when the GPU's power
	// is at its limit and its clock is lower. MemoryPower is the power of kernels that only move
	// memory, of that limit.
	SustainedFLOPS float64 `json:"sustained_flops,omitzero"`
	MemoryPower    float64 `json:"memory_power,omitzero"`
	// AttentionFLOPS is the rate of the fused attention kernel, in FLOP/s.
	AttentionFLOPS float64 `json:"attention_flops,omitzero"`
	// Memory rates, bytes read and written: BytesPerSecond of kernels that read tensors in order,
	// StridedBytesPerSecond of kernels that broadcast, reduce, cast up or read slices. The last two
	// are the optimizer's kernel on 16-bit and on 32-bit weights.
	BytesPerSecond           float64 `json:"bytes_per_second,omitzero"`
	StridedBytesPerSecond    float64 `json:"strided_bytes_per_second,omitzero"`
	UpdateBytesPerSecond     float64 `json:"update_bytes_per_second,omitzero"`
	FP32UpdateBytesPerSecond float64 `json:"fp32_update_bytes_per_second,omitzero"`
	// KernelSeconds is the overhead of each kernel.
	KernelSeconds float64 `json:"kernel_seconds,omitzero"`
	// OperationSeconds is the overhead of an operation of devmap's kernel for decode steps, and
	// RowSeconds that of each of its rows; 0: kernels run one by one.
	OperationSeconds float64 `json:"operation_seconds,omitzero"`
	RowSeconds       float64 `json:"row_seconds,omitzero"`
	// IssueSeconds and BackwardIssueSeconds are the host's time to issue a kernel, with Python.
	// ShardedIssueSeconds is the host time of FSDP2's hooks for a parameter, each way.
	IssueSeconds         float64 `json:"issue_seconds,omitzero"`
	BackwardIssueSeconds float64 `json:"backward_issue_seconds,omitzero"`
	ShardedIssueSeconds  float64 `json:"sharded_issue_seconds,omitzero"`
	// LinkBytesPerSecond is the rate to other GPUs, each way. CollectiveBytesPerSecond is the rate
	// in a ring of NCCL, OverlappedBytesPerSecond the same while kernels run. A collective occupies
	// CollectiveShare of the device's processors while it runs, and adds CollectiveSeconds.
	LinkBytesPerSecond       float64 `json:"link_bytes_per_second,omitzero"`
	CollectiveBytesPerSecond float64 `json:"collective_bytes_per_second,omitzero"`
	OverlappedBytesPerSecond float64 `json:"beside_bytes_per_second,omitzero"`
	CollectiveShare          float64 `json:"collective_share,omitzero"`
	CollectiveSeconds        float64 `json:"collective_seconds,omitzero"`
	// HostBytesPerSecond is sent to GPUs of other hosts, and received, each, if no link says otherwise.
	HostBytesPerSecond float64 `json:"host_bytes_per_second,omitzero"`
	// CPUBytesPerSecond is copied from the host's pageable memory,
	// DiskBytesPerSecond from its disk: weights that were offloaded.
	CPUBytesPerSecond  float64 `json:"cpu_bytes_per_second,omitzero"`
	DiskBytesPerSecond float64 `json:"disk_bytes_per_second,omitzero"`
	// PinnedBytesPerSecond is copied from and to pinned memory of the host, each way: activations
	// that were offloaded.
	PinnedBytesPerSecond float64 `json:"pinned_bytes_per_second,omitzero"`
	// A ratio divides measured seconds of devmap's engine by the seconds that the rates above predict.
	// BackwardRatio is that of whole backwards, or of their part up to the gradient of the input.
	// WeightsRatio is that of the other part, UpdateRatio that of the optimizer's step.
	ForwardRatio  float64 `json:"forward_ratio,omitzero"`
	BackwardRatio float64 `json:"backward_ratio,omitzero"`
	WeightsRatio  float64 `json:"weights_ratio,omitzero"`
	UpdateRatio   float64 `json:"update_ratio,omitzero"`
}

// check names the first rate that cannot be one, as a topology file has it.
func (rates *Rates) check() error {
	value := reflect.ValueOf(*rates)
	for i := range value.NumField() {
		rate, most, said := value.Field(i).Float(), 1e21, "between 0 and 1e21"
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "collective_share" || name == "memory_power" {
			most, said = 1, "a share below 1"
		}
		if !within(rate, 0, most) {
			return fmt.Errorf("%s: %v is not %s", name, rate, said)
		}
	}
	return nil
}

// over lays the rates that are known over others.
func (rates Rates) over(base Rates) Rates {
	known, under := reflect.ValueOf(&rates).Elem(), reflect.ValueOf(base)
	for i := range known.NumField() {
		if known.Field(i).IsZero() {
			known.Field(i).Set(under.Field(i))
		}
	}
	return rates
}

package recipe

import (
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Limits of the CUDA backend's kernel of decode steps (executor/cuda/internal/kernel): the most rows, the
// widest head, how many heads a task of attention has, and how many tasks attention is divided into.
const (
	fusedRows  = 16
	fusedWidth = 128
	fusedHeads = 8
	fusedTasks = 128
)

// countFused counts the kernels of a decode pass that the CUDA backend runs as operations of one
// kernel, and these operations.
func (writer *writer) countFused() {
	routine := &writer.code.Decode
	if writer.dtype != modelgraph.BF16 || writer.sequences > fusedRows {
		return
	}
	for at := 0; at < len(routine.Kernels); {
		operations, kernels := writer.fused(routine.Kernels[at:])
		routine.Work.Operations += float64(operations)
		routine.Work.Fused += float64(kernels)
		at += max(1, kernels)
	}
	routine.Work.Rows = float64(writer.sequences)
}

// fused returns the operations that the next kernels are, and how many kernels these are.
func (writer *writer) fused(next []Kernel) (operations, kernels int) {
	name := func(at int) string {
		if at < len(next) {
			return next[at].Name
		}
		return ""
	}
	if name(0) == "attention_decode" {
		return writer.fusedAttention(&next[0], name(1) == "attention_join")
	}
	at, products := 0, 0
	if name(0) == "norm" && next[0].Dim("style") != "layer" {
		at = 1
	}
	for products < 3 && name(at+products) == "gemm" && next[at+products].operand("a") == next[at].operand("a") {
		products++
	}
	switch at += products; {
	case products == 0:
		return 0, 0
	case products == 3 && name(at) == "rope" && name(at+1) == "cache":
		return 1, at + 2
	case name(at) == "gate":
		return 1, at + 1
	case products == 1 && name(at) == "argmax":
		return 2, at + 1
	}
	return 1, at
}

// fusedAttention is [writer.fused] of attention to the cache, which may be joined by the next kernel.
func (writer *writer) fusedAttention(attention *Kernel, joined bool) (operations, kernels int) {
	number := func(name string) int64 {
		value, _ := strconv.ParseInt(attention.Dim(name), 10, 64)
		return value
	}
	if number("dim") > fusedWidth {
		return 0, 0
	}
	if !joined {
		return 1, 1
	}
	kv := max(1, number("kv"))
	groups := kv * ((number("heads")/kv + fusedHeads - 1) / fusedHeads)
	if writer.sequences*groups > fusedTasks/2 {
		return 1, 2
	}
	return 2, 2
}

// operand returns the first operand of a role, as text would have it: two that are equal are one part.
func (kernel *Kernel) operand(role string) Operand {
	for _, operand := range kernel.Operands {
		if operand.Role == role {
			return operand
		}
	}
	return Operand{}
}

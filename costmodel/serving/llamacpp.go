package serving

import (
	"cmp"
	"maps"
	"slices"
)

// LlamaCPP are the settings of llama.cpp that its memory depends on. The rules are those of
// version 0.5.0 (ggml 0.25).
type LlamaCPP struct {
	Context   int64 // tokens of a sequence
	Sequences int64 // -np; each has its own part of -c
	// KeyType and ValueType are the types of the cache, such as f16.
	KeyType, ValueType string
	UBatch             int64 // -ub: tokens of one pass
	// Outputs are the most rows of logits of one pass: those of a server's sequences, or a batch.
	Outputs int64
	// Pipelined: several devices work at a time, with four copies of their inputs (-sm layer without
	// -ot and --n-cpu-moe, everything on devices; llama-context.cpp, pipeline_parallel).
	Pipelined bool
	// HostExperts are the first blocks whose experts stay on the host (--n-cpu-moe).
	HostExperts int64
	// HostBlocks are the first blocks, which stay on the host (-ngl).
	HostBlocks int64
	// Alignment of tensors in a device's memory; 0: CUDA's, whose kernels have a cache of other
	// types in fp16 for a pass, and read the values of experts until their sum.
	Alignment int64
}

// alignment is that of CUDA's buffers if none is set (ggml-cuda.cu,
// ggml_backend_cuda_buffer_type_get_alignment).
func (set *LlamaCPP) alignment() int64 {
	const ofCUDA = 128
	return cmp.Or(set.Alignment, ofCUDA)
}

// onCUDA is what CUDA adds to weights, if the device is one of CUDA.
func (set *LlamaCPP) onCUDA(padding int64) int64 {
	if set.Alignment != 0 {
		return 0
	}
	return padding
}

// cacheTypes are the types of the cache (common/arg.cpp, kv_cache_types): elements and bytes of a
// block.
var cacheTypes = map[string][2]int64{
	"f16": {1, 2}, "bf16": {1, 2}, "q8_0": {32, 34}, "q4_0": {32, 18}, "q4_1": {32, 20},
	"iq4_nl": {32, 18}, "q5_0": {32, 22}, "q5_1": {32, 24},
}

// CacheTypes lists the types of the cache.
func CacheTypes() []string { return slices.Sorted(maps.Keys(cacheTypes)) }

// Memory is what one device holds, in bytes.
type Memory struct{ Weights, Cache, Compute int64 }

// Total is the sum.
func (memory Memory) Total() int64 { return memory.Weights + memory.Cache + memory.Compute }

// Units is the number of parts that llama.cpp places: the blocks and the output.
func (model *Model) Units() int { return len(model.Blocks) + 1 }

// cells are those of a sequence for its tokens (llama-context.cpp: GGML_PAD).
func (set *LlamaCPP) cells() int64 { return padded(set.Context, 256) }

func padded(size, to int64) int64 { return (size + to - 1) / to * to }

// slidingCells are those of a block that slides (llama-kv-cache-iswa.cpp).
func (set *LlamaCPP) slidingCells(model *Model) int64 {
	return padded(min(set.cells(), model.Window+set.UBatch), 256)
}

// cellsOf are the cells of a block's cache, of all sequences.
func (set *LlamaCPP) cellsOf(model *Model, block *Block) int64 {
	if block.Sliding {
		return set.Sequences * set.slidingCells(model)
	}
	return set.Sequences * set.cells()
}

// cache is the bytes of a block's cache, and of its state.
func (set *LlamaCPP) cache(model *Model, block *Block) int64 {
	return set.cellsOf(model, block)*set.PerToken(block) + set.Sequences*block.State
}

// PerToken is the bytes of a block's cache for a token that it keeps.
func (set *LlamaCPP) PerToken(block *Block) int64 {
	return rowBytes(set.KeyType, block.Key) + rowBytes(set.ValueType, block.Value)
}

func rowBytes(kind string, elements int64) int64 {
	size := cacheTypes[kind]
	return elements / size[0] * size[1]
}

// copies are the copies of the inputs of a device's part.
func (set *LlamaCPP) copies() int64 {
	if set.Pipelined {
		return 4 // ggml-backend.cpp: GGML_SCHED_MAX_COPIES
	}
	return 1
}

// Devices returns what each of several devices holds that have so many units each, first the
// blocks that no device has, and what the host holds. A device without units has nothing.
func (set *LlamaCPP) Devices(model *Model, counts []int) (devices []Memory, onHost Memory) {
	onHost.Weights = model.Input
	unit := 0
	for ; unit < int(set.HostBlocks); unit++ {
		onHost.Weights += model.Blocks[unit].Bytes
		onHost.Cache += set.cache(model, &model.Blocks[unit])
	}
	devices = make([]Memory, len(counts))
	for i, count := range counts {
		for at := unit; at < min(unit+count, len(model.Blocks)); at++ {
			if int64(at) < set.HostExperts {
				onHost.Weights += model.Blocks[at].Expert
			}
		}
		devices[i] = set.Run(model, unit, unit+count)
		unit += count
	}
	return devices, onHost
}

// Run is what a device holds that has the units from first to end.
func (set *LlamaCPP) Run(model *Model, first, end int) (device Memory) {
	for unit := first; unit < min(end, len(model.Blocks)); unit++ {
		block := &model.Blocks[unit]
		device.Weights += block.Bytes + set.onCUDA(block.padding)
		if int64(unit) < set.HostExperts {
			device.Weights -= block.Expert + set.onCUDA(block.expertPadding)
		}
		device.Cache += set.cache(model, block)
	}
	if end == model.Units() && first < end {
		device.Weights += model.Output + set.onCUDA(model.padding)
	}
	if first < end {
		device.Compute = set.compute(model, first, end) + set.copied(model, first, end)
	}
	return device
}

// Read is the bytes that a device reads for a token of one sequence: its weights, of the experts those
// that a token uses, and the sequence's cache.
func (set *LlamaCPP) Read(model *Model, first, end int) (size int64) {
	alone := *set
	alone.Sequences = 1
	for unit := first; unit < min(end, len(model.Blocks)); unit++ {
		block := &model.Blocks[unit]
		size += block.Bytes - block.Expert + alone.cache(model, block)
		if model.Experts > 0 && int64(unit) >= set.HostExperts {
			size += int64(float64(block.Expert) * float64(min(model.ExpertsUsed, model.Experts)) / float64(model.Experts))
		}
	}
	if end == model.Units() {
		size += model.Output
	}
	return size
}

func (model *Model) slides() bool {
	return slices.ContainsFunc(model.Blocks, func(block Block) bool { return block.Sliding })
}

// copied is the buffer for experts of the host. For prompts CUDA computes with them, and one tensor
// at a time is copied to the device (ggml-backend.cpp, op_offload).
func (set *LlamaCPP) copied(model *Model, first, end int) (largest int64) {
	for unit := first; unit < min(end, int(set.HostExperts), len(model.Blocks)); unit++ {
		largest = max(largest, model.Blocks[unit].Largest)
	}
	return largest
}

// Layers returns the units that each device gets for -ts and -ngl, and the number of blocks before
// them, which the host keeps. A unit goes to the first device whose cumulated part of the split is
// larger than the unit's place, in float32 (llama-model.cpp, load_tensors).
func Layers(units int, split []float32, offloaded int) (host int, counts []int) {
	host = max(0, units-offloaded)
	offloaded = min(offloaded, units)
	ends := make([]float32, len(split))
	var sum float32
	for i, part := range split {
		sum += part
		ends[i] = sum
	}
	for i := range ends {
		ends[i] /= sum
	}
	counts = make([]int, len(split))
	for unit := range offloaded {
		place := float32(unit) / float32(offloaded)
		device := slices.IndexFunc(ends, func(end float32) bool { return end > place })
		if device < 0 {
			device = len(split) - 1
		}
		counts[device]++
	}
	return host, counts
}

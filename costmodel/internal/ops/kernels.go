package ops

import "math/bits"

// These sizes are of an H100 or H200; sums are divided for them.
const (
	processors       = 132
	processorThreads = 2048
)

// ruleSizes is how many sizes a rule of a kernel takes.
var ruleSizes = map[string]int{"sum": 2, "flash": 3, "efficient": 3, "wide": 3, "sorted": 1, "segments": 3, "norm": 3, "norm sum": 2}

// InKernel returns the bytes that a CUDA kernel takes by a rule of sizes. The rules and their sources
// are those of modelgraph/python/devmap/_core/measure/hidden.py (RULES). An unknown rule is -1.
func InKernel(rule string, sizes []int64) int64 {
	const sortFrom = 3072 // indices of an embedding's gradient
	if wanted, known := ruleSizes[rule]; !known || wanted != len(sizes) {
		return -1
	}
	first := sizes[0]
	switch rule {
	case "sum":
		return ReduceBuffer(first, sizes[1])
	case "flash":
		return flashGradient(first, sizes[1], sizes[2])
	case "efficient":
		return first * up(sizes[1], 128) * (4*128*64*up(sizes[2], 64) + 32)
	case "wide":
		if max(sizes[1], sizes[2]) > 128 {
			return 4 * first * sizes[2]
		}
	case "sorted":
		if first > sortFrom {
			return 8 * first
		}
	case "segments":
		if first > sortFrom {
			return 4 * (up(first, 10) + min(first, sizes[1])) * sizes[2]
		}
	case "norm":
		return normParts(first, sizes[1]) * sizes[1] * sizes[2]
	case "norm sum":
		return ReduceBuffer(normParts(first, sizes[1]), sizes[1])
	}
	return 0
}

// flashGradient is the fp32 gradient of queries in flash attention's backward. A width of 1 is its
// softmax_d, a number for each row.
func flashGradient(heads, length, width int64) int64 {
	rows := 4 * heads * 128 * up(length, 128)
	switch {
	case width == 1:
		return rows
	case width <= 128:
		return rows * 32 * up(width, 32)
	}
	return rows * 64 * up(width, 64)
}

// normParts is how many parts the rows of a norm's gradient have, if the kernel divides them.
func normParts(rows, columns int64) int64 {
	const from = 1 << 16 // rows
	if rows <= from || columns/32 >= processors/2 {
		return 0
	}
	return 4 * up(rows, 128)
}

// ReduceBuffer returns the bytes of partial sums for a sum over rows of a [rows, columns] tensor. A
// bias's gradient is such a sum, and so is that of a norm's weight. Source:
// ATen/native/cuda/Reduce.cuh, setReduceConfig and ReduceConfig::global_memory_size. A thread has up
// to 4 columns. If it would have 256 values or more, several blocks divide the rows.
func ReduceBuffer(rows, columns int64) int64 {
	const least, most = 16, 256 // values per thread
	if rows <= 0 || columns <= 0 {
		return 0
	}
	vector := min(4, columns&-columns)
	threads, wide := 512/vector, power(columns/vector)
	height := min(power(rows), threads/min(32, wide))
	width := min(wide, threads/height)
	values, blocks := up(rows, height), up(columns, width*vector)
	target := processors * (processorThreads / (width * height))
	if values < most || blocks > target {
		return 0
	}
	parts := max(min(up(target, blocks), up(values, least)), up(values, most))
	if parts < 2 {
		return 0
	}
	return 4 * columns * parts * width * vector // fp32
}

// power is the largest power of two that is not above count.
func power(count int64) int64 { return 1 << (max(1, bits.Len64(uint64(count))) - 1) }

func up(amount, divisor int64) int64 { return (amount + divisor - 1) / divisor }

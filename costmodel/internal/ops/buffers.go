package ops

import "github.com/devmap-dev/devmap/costmodel/internal/allocator"

// The GPU that the sums of reduceBuffer are cut for: an H100 or H200.
const (
	processors       = 132
	processorThreads = 2048
)

// ReduceBuffer is where the sum over rows of a [rows, columns] tensor, the
// gradient of a bias or of a norm's weight, puts the parts that its blocks make
// (ATen/native/cuda/Reduce.cuh, setReduceConfig and
// ReduceConfig::global_memory_size). A block has 128 threads, 32 along the
// columns with 4 columns each; the rows are cut over blocks where a thread
// would have 256 values or more.
func ReduceBuffer(rows, columns int64) int64 {
	const (
		vector, width, height = 4, 32, 4
		least, most           = 16, 256 // values a thread
	)
	if columns%vector != 0 || columns < vector*width {
		return 0
	}
	values := up(rows, height)
	blocks := up(columns/vector, width)
	target := int64(processors * processorThreads / (width * height))
	if values < most || blocks > target {
		return 0
	}
	parts := max(min(up(target, blocks), up(values, least)), up(values, most))
	if parts < 2 {
		return 0
	}
	return 4 * columns * parts * width * vector // fp32
}

func up(amount, divisor int64) int64 { return (amount + divisor - 1) / divisor }

// remainder is what the block of a large tensor has in addition to it
// ([allocator.Rounding]); what is rounded to 512 B is left out.
func remainder(size int64) int64 {
	if rounding := allocator.Rounding(size); rounding >= 512 {
		return rounding
	}
	return 0
}

package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/devmap-dev/devmap/modelgraph"
	"gonum.org/v1/gonum/blas/blas32"
)

// block returns rows × columns of a matrix in fp32: a view if the matrix is fp32, or else a
// converted copy in scratch.
func (matrix *Matrix) block(row, column, rows, columns int64, scratch []float32) blas32.General {
	if matrix.DType == modelgraph.F32 {
		values := stretch[float32](matrix, row, column, int((rows-1)*matrix.Stride+columns))
		return blas32.General{Rows: int(rows), Cols: int(columns), Stride: int(matrix.Stride), Data: values}
	}
	made := tile(rows, columns, scratch)
	for i := range rows {
		matrix.Load(row+i, column, line(made, i))
	}
	return made
}

// storeBlock writes a block, rounded to the matrix's type.
func (matrix *Matrix) storeBlock(row, column int64, block blas32.General) {
	for i := range int64(block.Rows) {
		matrix.Store(row+i, column, line(block, i))
	}
}

// tile returns a contiguous matrix in scratch.
func tile(rows, columns int64, scratch []float32) blas32.General {
	return blas32.General{Rows: int(rows), Cols: int(columns), Stride: int(columns), Data: scratch[:rows*columns]}
}

// line is a row of a tile.
func line(tile blas32.General, row int64) []float32 {
	return tile.Data[int(row)*tile.Stride:][:tile.Cols]
}

// rounding rounds a value to the matrix's type.
func (matrix *Matrix) rounding() func(value float32) float32 {
	if matrix.DType == modelgraph.BF16 {
		return func(value float32) float32 { return FromBF16(ToBF16(value)) }
	}
	return exactly
}

// exactly is the rounding of fp32, and of values that are not tensors.
func exactly(value float32) float32 { return value }

// mostWorkers is how many goroutines of the process run kernels at once, over all devices. Each
// holds rows or blocks, and their total must not grow with the machine. 8 of them stay below 20
// MiB; the garbage collector lets twice as much accumulate.
const mostWorkers = 8

// turns has a scratch buffer for each worker that may run. Kernels reuse them and leave no garbage.
var turns = func() chan *scratch {
	all := make(chan *scratch, min(runtime.GOMAXPROCS(0), mostWorkers))
	for range cap(all) {
		all <- new(scratch)
	}
	return all
}()

// scratch is a buffer that workers use one after another. It is never cleared.
type scratch struct {
	values []float32
	taken  int64
}

// take returns count values of the buffer, or new ones if it is still too small.
func (scratch *scratch) take(count int64) []float32 {
	from := scratch.taken
	scratch.taken += (count + 3) / 4 * 4 // gonum's kernels are faster from multiples of 16 bytes on
	if scratch.taken > int64(len(scratch.values)) {
		return make([]float32, count)
	}
	return scratch.values[from : from+count : from+count]
}

// leave returns all values to the buffer, and makes it as large as what was taken.
func (scratch *scratch) leave() {
	if scratch.taken > int64(len(scratch.values)) {
		scratch.values = make([]float32, scratch.taken)
	}
	scratch.taken = 0
}

// spread calls the function of a worker once for every index. Each index must write only what it
// owns and read nothing that another writes. Then the result does not depend on the number of
// workers.
func spread(count int64, worker func(scratch *scratch) func(index int64)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)), mostWorkers, count) {
		workers.Go(func() {
			scratch := <-turns
			defer func() { turns <- scratch }()
			index := next.Add(1) - 1
			if index >= count {
				return
			}
			for run := worker(scratch); index < count; index = next.Add(1) - 1 {
				run(index)
			}
			scratch.leave()
		})
	}
	workers.Wait()
}

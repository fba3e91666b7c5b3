package kernel

import (
	"runtime"
	"sync"
)

// inRows calls f for ranges of rows, on several cores if there is enough work. The result of a row
// must not depend on its range.
func inRows(rows, each int64, f func(first, end int64)) {
	const least = 1 << 15 // values that justify a goroutine
	workers := max(1, min(int64(runtime.GOMAXPROCS(0)), mostWorkers, rows, rows*each/least))
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			turn := <-turns
			defer func() { turns <- turn }()
			f(rows*i/workers, rows*(i+1)/workers)
		})
	}
	group.Wait()
}

// copyRows copies rows, converted to the type of y.
func copyRows(call *Call) error {
	return pick(call, func(i int64) int64 { return i })
}

// firstRows and lastRows copy the first or the last token of each sequence.
func firstRows(call *Call) error {
	seq := call.size("seq", 1)
	return pick(call, func(i int64) int64 { return i * seq })
}

func lastRows(call *Call) error {
	seq := call.size("seq", 1)
	return pick(call, func(i int64) int64 { return i*seq + seq - 1 })
}

// pick copies row from(i) of x into row i of y.
func pick(call *Call, from func(i int64) int64) error {
	matrices, err := call.need("x", "y")
	if err != nil {
		return err
	}
	x, y := matrices[0], matrices[1]
	inRows(y.Rows, y.Columns, func(first, end int64) {
		buffer := make([]float32, y.Columns)
		for i := first; i < end; i++ {
			y.Store(i, 0, x.row(from(i), buffer))
		}
	})
	return nil
}

// columnSums adds up rows in parts: row i goes into part i modulo the parts.
func columnSums(call *Call) error {
	matrices, err := call.need("x", "sums")
	if err != nil {
		return err
	}
	x, sums := matrices[0], matrices[1]
	inRows(sums.Rows, x.Columns*(x.Rows/sums.Rows+1), func(first, end int64) {
		buffer, sum := make([]float32, x.Columns), make([]float32, x.Columns)
		for part := first; part < end; part++ {
			clear(sum)
			for i := part; i < x.Rows; i += sums.Rows {
				addTo(sum, x.row(i, buffer))
			}
			sums.Store(part, 0, sum)
		}
	})
	return nil
}

// addRows adds up rows into a gradient of one row.
func addRows(call *Call) error {
	matrices, err := call.need("x", "d")
	if err != nil {
		return err
	}
	x, d := matrices[0], matrices[1]
	sum, buffer := make([]float64, x.Columns), make([]float32, x.Columns)
	for i := range x.Rows {
		for j, value := range x.row(i, buffer) {
			sum[j] += float64(value)
		}
	}
	if call.adds("d") {
		for j, value := range d.row(0, buffer) {
			sum[j] += float64(value)
		}
	}
	for j, value := range sum {
		buffer[j] = float32(value)
	}
	d.Store(0, 0, buffer)
	return nil
}

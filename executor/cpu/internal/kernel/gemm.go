package kernel

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// A product is computed in independent tiles of d. Along k, both factors are laid out in fp32 in
// blocks of depth, with k running inwards. gonum multiplies two blocks in one thread, and the
// results are added up. The blocks follow from the shape alone, so that the bits depend neither on
// the threads nor on other work. A worker takes 1.0 MiB, whatever the size.
const (
	tileRows    = 256
	tileColumns = 128
	depth       = 512
	// stride is depth with a gap, so that rows fall into different sets of a cache.
	stride = depth + 16
	// grain is how many rows gonum takes at once. With fewer than four 64 × 64 blocks it uses one
	// thread, and sums as long as depth.
	grain = 64
)

// space is the memory of one worker.
type space struct {
	a         [tileRows * stride]float32
	b         [tileColumns * stride]float32
	part, sum [tileRows * tileColumns]float32
}

// spaces has the memory of all workers of the process. A nil one was not needed yet.
var spaces = func() chan *space {
	workers := min(runtime.GOMAXPROCS(0), mostWorkers)
	all := make(chan *space, workers)
	for range workers {
		all <- nil
	}
	return all
}()

// gemm is d = a·b + bias + add. The product is rounded before add is added, like a residual in
// PyTorch.
func gemm(call *Call) error {
	product, err := productOf(call)
	if err != nil {
		return err
	}
	across := (product.columns + tileColumns - 1) / tileColumns
	tiles := (product.rows + tileRows - 1) / tileRows * across
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(tiles, int64(cap(spaces))) {
		workers.Go(func() {
			own := <-spaces
			if own == nil {
				own = new(space)
			}
			for tile := next.Add(1) - 1; tile < tiles; tile = next.Add(1) - 1 {
				product.tile(own, tile/across*tileRows, tile%across*tileColumns)
			}
			spaces <- own
		})
	}
	workers.Wait()
	return nil
}

// product is a gemm: its factors, how they are read, and what is added to them.
type product struct {
	a, b                 *Matrix
	turnA, turnB         bool // k runs along the matrix's rows
	rows, columns, inner int64
	bias, add, d         *Matrix
	adds                 bool // to what d holds
}

func productOf(call *Call) (*product, error) {
	matrices, err := call.need("a", "b", "d")
	if err != nil {
		return nil, err
	}
	form := call.text("form")
	product := &product{
		a: matrices[0], b: matrices[1], d: matrices[2], bias: call.matrix("bias"), add: call.matrix("add"),
		turnA: form == "tn", turnB: form != "nt", adds: call.adds("d"),
	}
	product.rows, product.inner = turned(product.a, product.turnA)
	columns, inner := turned(product.b, product.turnB)
	product.columns = columns
	if inner != product.inner || product.d.Rows != product.rows || product.d.Columns != columns {
		return nil, fmt.Errorf("gemm form=%s: a is %d × %d, b %d × %d and d %d × %d", form, product.a.Rows, product.a.Columns, product.b.Rows, product.b.Columns, product.d.Rows, product.d.Columns)
	}
	return product, nil
}

// turned returns a matrix's rows and columns, swapped if turn is true.
func turned(matrix *Matrix, turn bool) (rows, columns int64) {
	if turn {
		return matrix.Columns, matrix.Rows
	}
	return matrix.Rows, matrix.Columns
}

// tile computes the tile of d that begins at a row and a column.
func (product *product) tile(own *space, row, column int64) {
	rows, columns := min(tileRows, product.rows-row), min(tileColumns, product.columns-column)
	for first := int64(0); first < product.inner; first += depth {
		count := min(depth, product.inner-first)
		lay(own.a[:], product.a, product.turnA, row, rows, first, count)
		lay(own.b[:], product.b, product.turnB, column, columns, first, count)
		into := &own.sum
		if first > 0 {
			into = &own.part
		}
		for i := int64(0); i < rows; i += grain {
			gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, int(min(grain, rows-i)), int(columns), int(count),
				1, own.a[i*stride:], stride, own.b[:], stride, 0, into[i*tileColumns:], tileColumns)
		}
		if first > 0 {
			for i, value := range own.part[:rows*tileColumns] {
				own.sum[i] += value
			}
		}
	}
	for i := range rows {
		product.finish(row+i, column, own.sum[i*tileColumns:][:columns], own.part[:columns])
	}
}

// lay writes rows [first, first+count) of a factor contiguously: length values of each, from inner
// on.
func lay(into []float32, from *Matrix, turned bool, first, count, inner, length int64) {
	if !turned {
		for i := range count {
			from.Load(first+i, inner, into[i*stride:][:length])
		}
		return
	}
	// Four rows at once, so that writes are adjacent.
	var rows [4][tileRows]float32
	for j := int64(0); j < length; j += int64(len(rows)) {
		together := min(int64(len(rows)), length-j)
		for row := range together {
			from.Load(inner+j+row, first, rows[row][:count])
		}
		for i := range count {
			// Up to three values more than length fall into free space of the row.
			four := into[i*stride+j:][:4]
			four[0], four[1], four[2], four[3] = rows[0][i], rows[1][i], rows[2][i], rows[3][i]
		}
	}
}

// finish adds the bias and the other summands to a part of a row, and stores it.
func (product *product) finish(row, column int64, values, work []float32) {
	add := func(matrix *Matrix, row int64) {
		matrix.Load(row, column, work)
		for i, value := range work {
			values[i] += value
		}
	}
	if product.bias != nil {
		add(product.bias, 0)
	}
	if product.add != nil {
		product.d.round(values)
		add(product.add, row)
	}
	if product.adds {
		add(product.d, row)
	}
	product.d.Store(row, column, values)
}

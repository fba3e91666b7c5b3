// Command products times the reference backend's matrix products, PyTorch's and
// those of NumPy's OpenBLAS, in one run on one machine. There is no threshold: the
// backend judges others and does not have to be fast. Run it from the repository's
// root:
//
//	go run ./executor/cpu/internal/products -python python3
//
// If the Python has no PyTorch, the only column is devmap's.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"text/tabwriter"
	"time"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// job is a product d[m,n] over k.
type job struct {
	form    string
	dtype   modelgraph.DType
	m, n, k int64
}

// jobs are a token and many through a projection, and what backward has of it.
func jobs() []job {
	var all []job
	for _, dtype := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
		all = append(all, job{"nt", dtype, 1, 2048, 2048}, job{"nt", dtype, 512, 2048, 2048}, job{"nn", dtype, 512, 2048, 2048}, job{"tn", dtype, 2048, 2048, 512})
	}
	return all
}

func (job job) String() string {
	return fmt.Sprintf("%s:%v:%d:%d:%d", job.form, job.dtype, job.m, job.n, job.k)
}

func main() {
	python := flag.String("python", cmp.Or(os.Getenv("PYTHON"), "python3"), "a Python that has PyTorch")
	flag.Parse()
	if err := run(os.Stdout, *python); err != nil {
		fmt.Fprintln(os.Stderr, "products:", err)
		os.Exit(1) //nolint:forbidigo // main
	}
}

func run(stdout io.Writer, python string) error {
	peers, names := open(python)
	writer := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(writer, "form\ttype\tm\tn\tk\tdevmap GFLOP/s\tPyTorch GFLOP/s\tratio\tOpenBLAS GFLOP/s\tratio\t")
	for _, job := range jobs() {
		// One after the other, so that other load of the machine affects both equally.
		theirs, err := peers.seconds(job)
		if err != nil {
			return err
		}
		seconds, err := job.seconds()
		if err != nil {
			return err
		}
		work := 2e-9 * float64(job.m) * float64(job.n) * float64(job.k)
		line := fmt.Sprintf("%s\t%v\t%d\t%d\t%d\t%.1f\t", job.form, job.dtype, job.m, job.n, job.k, work/seconds)
		for _, other := range theirs {
			if other > 0 {
				line += fmt.Sprintf("%.1f\t%.3f\t", work/other, other/seconds)
			} else {
				line += "–\t–\t"
			}
		}
		fmt.Fprintln(writer, line)
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	if err := peers.close(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, names)
	return err
}

// seconds is the fastest of many calls.
func (job job) seconds() (float64, error) {
	a, b := [2]int64{job.m, job.k}, [2]int64{job.k, job.n}
	if job.form == "nt" {
		b = [2]int64{job.n, job.k}
	}
	if job.form == "tn" {
		a = [2]int64{job.k, job.m}
	}
	call := &kernel.Call{
		Kernel:   &recipe.Kernel{Name: "gemm", Dims: []recipe.Dim{{Name: "form", Value: job.form}}, Operands: []recipe.Operand{{Role: "a"}, {Role: "b"}, {Role: "d", Mode: '>'}}},
		Operands: []kernel.Matrix{randomMatrix(job.dtype, a), randomMatrix(job.dtype, b), randomMatrix(job.dtype, [2]int64{job.m, job.n})},
	}
	best := time.Duration(1 << 62)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		start := time.Now()
		if err := kernel.Run(call); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
	}
	return best.Seconds(), nil
}

// randomMatrix is a matrix of normal numbers.
func randomMatrix(dtype modelgraph.DType, shape [2]int64) kernel.Matrix {
	random := rand.New(rand.NewPCG(12, 1))
	made := kernel.Matrix{DType: dtype, Rows: shape[0], Columns: shape[1], Stride: shape[1], Data: make([]byte, shape[0]*shape[1]*dtype.Bits()/8)}
	row := make([]float32, shape[1])
	for i := range shape[0] {
		for j := range row {
			row[j] = float32(random.NormFloat64())
		}
		made.Store(i, 0, row)
	}
	return made
}

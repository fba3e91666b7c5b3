package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestThreads: what a kernel makes is the same to the bit, however many threads
// share its rows or tiles.
func TestThreads(t *testing.T) {
	large := map[string]func(trial *trial) *trial{
		"gemm form=tn": func(trial *trial) *trial {
			return trial.with("a", modelgraph.BF16, 1100, 300, 1).with("b", modelgraph.F32, 1100, 200, 1).with(">d", modelgraph.F32, 300, 200, 1)
		},
		"norm style=rms epsilon=1e-05": func(trial *trial) *trial {
			return trial.with("x", modelgraph.F32, 300, 400, 1).with("weight", modelgraph.F32, 1, 400, 1).with(">y", modelgraph.F32, 300, 400, 1)
		},
		"norm_backward style=layer epsilon=1e-05": func(trial *trial) *trial {
			return trial.with("x", modelgraph.F32, 900, 400, 1).with("rstd", modelgraph.F32, 900, 1, 1).with("mean", modelgraph.F32, 900, 1, 1).with("weight", modelgraph.F32, 1, 400, 1).
				with("dy", modelgraph.F32, 900, 400, 1).with(">dx", modelgraph.F32, 900, 400, 1).with(">sums", modelgraph.F32, 128, 400, 1).with(">biases", modelgraph.F32, 128, 400, 1)
		},
		"column_sums": func(trial *trial) *trial {
			return trial.with("x", modelgraph.F32, 900, 400, 1).with(">sums", modelgraph.F32, 128, 400, 1)
		},
		"gate activation=silu": func(trial *trial) *trial {
			return trial.with("gate", modelgraph.F32, 300, 400, 1).with("up", modelgraph.F32, 300, 400, 1).with(">y", modelgraph.F32, 300, 400, 1)
		},
		"square": func(trial *trial) *trial {
			return trial.with("x", modelgraph.F32, 900, 400, 1).with(">y", modelgraph.F32, 1, 1, 1)
		},
		"adamw": func(trial *trial) *trial {
			return trial.with("gradient", modelgraph.F32, 300, 400, 1).with("+weight", modelgraph.F32, 300, 400, 1).with("+mean", modelgraph.F32, 300, 400, 1).
				filled("+square", modelgraph.F32, 300, 400, func() float64 { return 1 }).settings(1, executor.Optimizer{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8})
		},
	}
	seed := seeded(t).Uint64()
	for line, with := range large {
		var name, dims string
		_, _ = fmt.Sscan(line, &name)
		dims = line[len(name):]
		left := make([]string, 0, 3)
		for _, threads := range []int{1, 2, 5} {
			before := runtime.GOMAXPROCS(threads)
			trial := with(newTrial(t, rand.New(rand.NewPCG(seed, 1)), name, dims))
			trial.only(t)
			left = append(left, trial.bits())
			runtime.GOMAXPROCS(before)
		}
		if left[0] != left[1] || left[0] != left[2] {
			t.Errorf("%s: other bits on other numbers of threads", line)
		}
	}
}

package kernel_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
)

func (trial *trial) fails() error { return kernel.Run(&trial.call) }

// TestGates: every activation, alone and times what it gates; in place as
// inference has them, and back into what comes in.
func TestGates(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, activation := range []string{"silu", "gelu", "gelu_tanh", "relu", "tanh"} {
			for _, shape := range [][2]int64{{1, 1}, {5, 7}, {130, 600}} {
				rows, columns := shape[0], shape[1]
				made := func(name string, roles ...string) *trial {
					trial := newTrial(t, random, name, fmt.Sprintf("rows=%d columns=%d activation=%s", rows, columns, activation))
					trial.least = 1e-3
					for _, role := range roles {
						trial.with(role, dtype, rows, columns, 3)
					}
					return trial
				}
				made("activate", "x").over(">y", 0).run(1e-6, 1e-2)
				made("activate", "x", ">y").run(1e-6, 1e-2)
				made("activate_backward", "x", "dy").over(">dx", 1).run(1e-6, 1e-2)
				made("gate", "gate", "up").over(">y", 0).run(1e-6, 1e-2)
				made("gate_backward", "gate", "up", "dy", ">dgate").over(">dup", 2).run(1e-6, 1e-2)
			}
		}
	}
}

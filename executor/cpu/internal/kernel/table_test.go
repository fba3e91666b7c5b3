package kernel_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestRefuses: a kernel that does not exist, or lacks what it needs, is an
// error that names it.
func TestRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"fused_rms":                   `there is no kernel "fused_rms"`,
		"gate activation=swish":       `gate has no activation "swish"`,
		"gate activation=silu":        `gate has no operand "gate"`,
		"activate_backward":           `activate_backward has no activation ""`,
		"gemm form=nn":                `gemm has no operand "a"`,
		"norm style=rms":              `norm has no operand "x"`,
		"norm_backward style=rms":     `norm_backward has no operand "x"`,
		"add_rows":                    `add_rows has no operand "x"`,
		"column_sums":                 `column_sums has no operand "x"`,
		"copy":                        `copy has no operand "x"`,
		"embedding":                   `embedding has no operand "table"`,
		"embedding_backward":          `embedding_backward has no operand "dy"`,
		"sort":                        `sort has no operand "ids"`,
		"square":                      `square has no operand "x"`,
		"adamw":                       `adamw has no operand "gradient"`,
		"sgd":                         `sgd has no operand "gradient"`,
		"last sequences=1 seq=1":      `last has no operand "x"`,
		"first sequences=1 seq=1":     `first has no operand "x"`,
		"gate_backward activation=":   `gate_backward has no activation ""`,
		"cast":                        `cast has no operand "x"`,
		"activate activation=relu":    `activate has no operand "x"`,
		"norm_again style=rms rows=1": `norm_again has no operand "x"`,
	} {
		name, dims, _ := strings.Cut(line, " ")
		trial := newTrial(t, seeded(t), name, dims).settings(1, executor.Optimizer{})
		if err := trial.fails(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	trial := newTrial(t, seeded(t), "adamw", "").with("gradient", modelgraph.F32, 1, 1, 1)
	if err := trial.fails(); err == nil || err.Error() != "adamw has no optimizer's settings" {
		t.Errorf("adamw without settings: %v", err)
	}
}

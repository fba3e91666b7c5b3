package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// workloads are every way of running a model.
var workloads = []costmodel.Workload{
	{Mode: costmodel.Train, Recompute: costmodel.RecomputeFull, Precision: costmodel.BF16Mixed},
	{Mode: costmodel.Train, Precision: costmodel.FP32True},
	{Mode: costmodel.Infer, Precision: costmodel.BF16True},
	{Mode: costmodel.Infer, NewTokens: 4, Precision: costmodel.FP32True},
}

// TestFamiliesMakeNumbers: programs of every family make finite numbers, whatever the stride of
// their rows. The search never takes poison for a result.
func TestFamiliesMakeNumbers(t *testing.T) {
	for family := range backendtest.Families {
		for _, wanted := range workloads {
			if backendtest.Forwards(family) && (wanted.Mode == costmodel.Train || wanted.NewTokens > 0) {
				continue
			}
			t.Run(fmt.Sprint(family, wanted.Mode, wanted.NewTokens, wanted.Recompute), func(t *testing.T) {
				wanted.Strategy, wanted.Batch, wanted.MicroBatches, wanted.Seq = costmodel.Pipeline, 4, 2, 12
				machine, _ := loaded(t, compiled(t, family, wanted, 2, 1))
				for number := range int64(2) {
					if _, err := machine.Step(context.Background(), &executor.Step{Number: number + 1, Optimizer: adamw}); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestValueError: a NaN or infinity is found where it first counts, and named: a weight by
// its kernel's result, a gradient by its norm.
func TestValueError(t *testing.T) {
	for _, test := range []struct {
		name string
		kind bind.Kind
		mode costmodel.Mode
		want string
	}{
		{"model.layers.1.mlp.up_proj.weight", bind.Weight, costmodel.Infer, "step 3, micro-batch 0: forward of model.layers.1 makes NaN in output"},
		{"model.layers.0.input_layernorm.weight", bind.Weight, costmodel.Train, "step 3, micro-batch 0: forward of model.layers.0 makes NaN in q"},
		{"lm_head.weight", bind.Weight, costmodel.Infer, "step 3, micro-batch 0: forward of lm_head makes NaN in logits"},
		{"lm_head.weight", bind.Weight, costmodel.Train, "step 3, micro-batch 0: forward of lm_head makes NaN in lse"},
		{"model.layers.1.mlp.up_proj.weight", bind.Gradient, costmodel.Train, "step 3: step of model.layers.1 makes NaN in mlp.up_proj.weight.gradient"},
	} {
		wanted := costmodel.Workload{Mode: test.mode, Strategy: costmodel.Pipeline, Batch: 2, MicroBatches: 2, Seq: 8, Precision: costmodel.FP32True}
		machine, bound := loaded(t, compiled(t, "llama", wanted, 2, 1))
		step := &executor.Step{Number: 3, Optimizer: adamw}
		if test.kind == bind.Weight {
			for _, param := range bound.Params() {
				if param.Name == test.name && param.Kind == test.kind {
					binary.LittleEndian.PutUint32(machine.arenas[param.Device][param.Offset:], 0x7fc00000)
				}
			}
		} else {
			step.Taps = spoiled(t, bound, machine, test.name)
		}
		_, err := machine.Step(context.Background(), step)
		var value *executor.ValueError
		if !errors.As(err, &value) || err.Error() != test.want {
			t.Errorf("%s, %s: %v, want %s", test.name, test.mode, err, test.want)
		}
	}
}

// A step that goes too far is found before anybody saves what it made.
func TestStepTooFar(t *testing.T) {
	for _, precision := range []costmodel.Precision{costmodel.FP32True, costmodel.BF16True, costmodel.BF16Mixed} {
		wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Batch: 1, Seq: 8, Precision: precision}
		machine, _ := loaded(t, compiled(t, "llama", wanted, 1, 1))
		optimizer := adamw
		optimizer.Rate = 1e39
		_, err := machine.Step(context.Background(), &executor.Step{Number: 1, Optimizer: optimizer})
		var value *executor.ValueError
		if !errors.As(err, &value) || value.Op != program.Step || !strings.HasPrefix(err.Error(), "step 1: step of model.embed_tokens makes ") {
			t.Errorf("%s: %v", precision, err)
		}
	}
}

// spoiled writes a NaN into a gradient just before its norm is taken.
func spoiled(t *testing.T, bound *bind.Bound, machine *machine, name string) map[executor.Tap]func() error {
	t.Helper()
	for i := range bound.Program.Instrs {
		instr, err := bound.Instr(int32(i))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for j := range instr.Runs {
			run := &instr.Runs[j]
			unit := &bound.Recipe.Units[run.Unit]
			for k := range run.Kernels {
				operand := &run.Kernels[k].Operands[0]
				if tensor := &unit.Code.Tensors[operand.Tensor]; run.Kernels[k].Name == "square" && unit.Name+"."+tensor.Name == name+".gradient" {
					at := machine.arenas[bound.Program.Instrs[i].Device][run.Area(operand).Offset:]
					return map[executor.Tap]func() error{{Instr: int32(i), Kernel: count}: func() error {
						binary.LittleEndian.PutUint32(at[4:], 0x7fc00000)
						return nil
					}}
				}
				count++
			}
		}
	}
	t.Fatalf("nothing takes the norm of %s", name)
	return nil
}

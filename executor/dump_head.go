package executor

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// dumpHidden takes the input of the head, before the head begins.
func (run dumper) dumpHidden(file string) error {
	var out *matrix
	unit := run.job.reader()
	passes, err := run.passesOf(unit)
	if err != nil {
		return err
	}
	code := run.job.Recipe.Units[unit].Code
	for i := range passes {
		pass := &passes[i]
		if pass.op != program.Forward {
			continue
		}
		input, known := pass.find(code, func(tensor *recipe.Tensor) bool { return tensor.Class == "input" })
		if !known {
			continue
		}
		if out == nil {
			if out, err = run.tensor(file, "hidden", run.job.Workload.Seq, input.Columns); err != nil {
				return err
			}
		}
		run.tap(Tap{pass.instr, pass.first}, func() error {
			return out.copy(pass.device, &input, pass.microBatch*input.Rows, 0, input.Columns, nil)
		})
	}
	return nil
}

// dumpLogits takes logits when they are made. Training makes parts of the vocabulary, one after
// another. Each part is taken before the kernel that reads it, and capped as that kernel does.
func (run dumper) dumpLogits(file string) error {
	op, _ := run.job.headOp()
	seq := run.job.Workload.Seq
	if run.job.Workload.NewTokens > 0 {
		seq = 1
	}
	out, err := run.tensor(file, "logits", seq, op.Vocab)
	if err != nil {
		return err
	}
	for i := range run.passes {
		pass := &run.passes[i]
		if pass.op != program.Forward {
			continue
		}
		if logits, known := run.given(pass, "logits"); known {
			run.tap(Tap{pass.instr, pass.first + len(pass.run.Kernels)}, func() error {
				return out.copy(pass.device, &logits, pass.microBatch*logits.Rows, 0, op.Vocab, nil)
			})
			continue
		}
		out.parts(pass)
	}
	return nil
}

// parts takes the logits of training, a part at a time.
func (matrix *matrix) parts(pass *pass) {
	for at := range pass.run.Kernels {
		kernel := &pass.run.Kernels[at]
		if kernel.Name != "softmax_sums" {
			continue
		}
		part := pass.run.Area(operand(kernel, "x"))
		first, limit := int64(number(kernel, "first", 0)), number(kernel, "cap", 0)
		matrix.tap(Tap{pass.instr, pass.first + at}, func() error {
			return matrix.copy(pass.device, &part, pass.microBatch*part.Rows, first, part.Columns, func(value float32) float32 {
				if limit == 0 {
					return value
				}
				return capped(value, limit, part.DType)
			})
		})
	}
}

// capped returns limit·tanh(value/limit). Each operation is rounded to the type of the logits, as
// in the kernel that reads them.
func capped(value float32, limit float64, dtype modelgraph.DType) float32 {
	round := func(value float32) float32 {
		bits := math.Float32bits(value)
		if dtype == modelgraph.BF16 {
			bits = (bits + 0x7fff + bits>>16&1) &^ 0xffff // to the nearest, ties to even
		}
		return math.Float32frombits(bits)
	}
	tanh := round(float32(math.Tanh(float64(round(value / float32(limit))))))
	return round(tanh * float32(limit))
}

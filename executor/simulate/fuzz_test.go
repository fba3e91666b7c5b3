package simulate_test

import (
	"bytes"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// FuzzRun simulates whatever can be read, valid or not: it ends, with a deadlock or
// with times at which nothing starts before what it waits for.
func FuzzRun(f *testing.F) {
	for _, slots := range []int32{0, 1, 2} {
		prog := schedule(costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 2, Chunks: 1, MicroBatches: 2}, slots, costs{1, 2, 1, 1})
		for i := range prog.Routines {
			prog.Routines[i].Units = []string{prog.Routines[i].Name}
		}
		var text bytes.Buffer
		if err := prog.Text(&text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		prog, err := program.Parse("fuzzed", text)
		if err != nil {
			return
		}
		result, err := simulate.Run(prog)
		if err != nil {
			return
		}
		for i, instr := range prog.Instrs {
			for _, wait := range prog.Waits[instr.FirstWait:instr.EndWait] {
				if result.Start[i] < result.End[wait.Instr] {
					t.Errorf("%s starts before %s ends", prog.Line(int32(i)), prog.Line(wait.Instr))
				}
			}
		}
		if err := simulate.WriteTrace(&bytes.Buffer{}, prog, result); err != nil {
			t.Error(err)
		}
	})
}

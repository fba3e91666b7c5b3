package accuracy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	cells := oracleCells(t)
	want := strings.Fields(os.Getenv("ZZ"))
	for i := range cells {
		cell := &cells[i]
		for _, w := range want {
			if w != cell.Type+":"+cell.Cell {
				continue
			}
			_, costs := costsOf(t, cell.Config, cell.workload())
			m := func(b int64) float64 { return float64(b) / (1 << 20) }
			for u := range costs.Units {
				unit := &costs.Units[u]
				fmt.Printf("%s recompute %v ckptout %.2f casts %.2f out %.2f pad %.2f\n", unit.Name, unit.Recompute, m(unit.CheckpointedOutput), m(unit.AutocastCopies), m(unit.Output), m(unit.Padding))
				for _, l := range unit.Layers {
					fmt.Printf("   %-40s saved %.2f fwd %.2f back %.2f bg %.2f grads %.2f ube %.2f resaved %.2f\n", l.Layer, m(l.Saved), m(l.Forward), m(l.Backward), m(l.BackwardGrads), m(l.Grads), m(l.UntilBodyEnd), m(l.RecomputeSaved))
				}
			}
			fmt.Println("output", m(costs.OutputBytes), costs.OutputsDropped)
		}
	}
}

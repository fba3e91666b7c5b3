package accuracy_test

import (
	"os"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	name := os.Getenv("ZZ")
	read := newTrainerRow
	if strings.HasPrefix(name, "sft") || strings.HasPrefix(name, "lf") || strings.HasPrefix(name, "dpo") {
		read = newPresetRow
	}
	if strings.HasPrefix(name, "titan") {
		read = newNativeRow
	}
	row := read(t, name)
	got, at, _ := row.predicted(t)
	t.Logf("%s %d %.3f at %s", name, got, gib(got), at)
	_, table := costsOf(t, distConfig(t, row.model), row.w)
	mib := func(b int64) float64 { return float64(b) / (1 << 20) }
	for i := range table.Units {
		u := &table.Units[i]
		if i > 2 && i < len(table.Units)-4 {
			continue
		}
		t.Logf("%s params %.2f buf %.2f state %.2f pad %.2f resident %.2f rec %t ckout %.2f auto %.2f", u.Name, mib(u.Params), mib(u.Buffers), mib(u.OptimizerState), mib(u.Padding), mib(u.ResidentGrads), u.Recompute, mib(u.CheckpointedOutput), mib(u.AutocastCopies))
		for k := range u.Layers {
			l := &u.Layers[k]
			t.Logf("    %-40s saved %.2f forward %.2f backward %.2f (grads %.2f) leaves %.2f recsaved %.2f", l.Layer, mib(l.Saved), mib(l.Forward), mib(l.Backward), mib(l.BackwardGrads), mib(l.Grads), mib(l.RecomputeSaved))
		}
	}
}

package recipe_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// FuzzOf: whatever a model file says, its code is written or refused as a
// field's fault, and what is small enough to be replayed is sound.
func FuzzOf(f *testing.F) {
	random := rand.New(rand.NewPCG(11, 3))
	for range 8 {
		var text bytes.Buffer
		if err := modelgraph.Write(&text, drawn(f, random)); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes(), uint8(random.IntN(6)), int64(6))
	}
	f.Add([]byte(`{"format_version":"devmap.model/v1","name":"m","layers":[{"name":"a","op":{"kind":"embedding","vocab":1099511627776,"dim":1099511627776}},{"name":"b","op":{"kind":"head","dim":8,"vocab":1099511627776}}]}`), uint8(0), int64(1<<40))
	names := []string{"train", "recompute", "mixed", "fp32", "infer", "generate"}
	f.Fuzz(func(t *testing.T, text []byte, way uint8, seq int64) {
		graph, err := modelgraph.Read(bytes.NewReader(text), "model.json")
		if err != nil || len(graph.Layers) > 100 {
			return
		}
		workload := smallWorkloads()[names[int(way)%len(names)]]
		workload.Seq = seq
		model, err := recipe.Of(graph, &workload)
		if err != nil {
			var fault *costmodel.FieldError
			if !errors.As(err, &fault) || fault.Field == "" {
				t.Errorf("%v is no field's fault", err)
			}
			return
		}
		for i := range model.Units {
			unit := &model.Units[i]
			if negative(unit) {
				t.Errorf("%s: negative sizes: %+v", unit.Name, unit.Regions)
			}
			if size(unit) > 1<<20 {
				continue
			}
			for _, fault := range judge(unit, &workload, way%2 == 0) {
				t.Errorf("%s: %s", unit.Name, fault)
			}
		}
	})
}

func negative(unit *recipe.Unit) bool {
	regions := &unit.Regions
	return min(regions.Weights, regions.Grads, regions.Master, regions.State, regions.Cache, regions.Feed, regions.Input, regions.Saved, regions.Remade,
		regions.Forward, regions.Backward, regions.Decode, regions.Output, regions.Token, regions.Result) < 0
}

// size is the bytes of all tensors.
func size(unit *recipe.Unit) int64 {
	var total int64
	for i := range unit.Code.Tensors {
		total += unit.Code.Tensors[i].Bytes()
	}
	return total
}

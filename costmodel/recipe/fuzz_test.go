package recipe_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// FuzzOf: any operation of a model file is written as code or refused with a field's error, and
// small code replays without faults.
func FuzzOf(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed), uint8(seed), int64(3), uint8(seed), int64(5))
	}
	f.Add(uint64(1), uint8(1), uint8(1), int64(1<<40), uint8(0), int64(1<<40))
	names := []string{"train", "recompute", "mixed", "fp32", "infer", "generate"}
	f.Fuzz(func(t *testing.T, seed uint64, layer, field uint8, value int64, way uint8, seq int64) {
		graph := changed(chainOf(t, rand.New(rand.NewPCG(seed, 3))), layer, field, value)
		if graph == nil {
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
			if size(unit) > 1<<18 {
				continue
			}
			for _, fault := range judge(unit, &workload, way%2 == 0) {
				t.Errorf("%s: %s", unit.Name, fault)
			}
		}
	})
}

// changed is the graph with another value in a field of a layer's operation, and the parameters
// that follow, written and read; nil if it is no model.
func changed(graph *modelgraph.Graph, at, field uint8, value int64) *modelgraph.Graph {
	layer := &graph.Layers[int(at)%len(graph.Layers)]
	op := reflect.New(reflect.TypeOf(layer.Op)).Elem()
	op.Set(reflect.ValueOf(layer.Op))
	switch to := op.Field(int(field) % op.NumField()); to.Kind() { //nolint:exhaustive // the kinds that ops have
	case reflect.Int64:
		to.SetInt(value)
	case reflect.Float64:
		to.SetFloat(float64(value))
	case reflect.Bool:
		to.SetBool(!to.Bool())
	case reflect.String:
		to.SetString([]string{"silu", "layer", "rms", "gemma-rms", "position", "token-type"}[uint64(value)%6])
	}
	layer.Op, _ = op.Interface().(modelgraph.Op)
	layer.Params = modelgraph.Params(layer.Op, nil)
	for j := range layer.Params {
		layer.Params[j].DType = modelgraph.BF16
	}
	rebuilt, err := modelgraph.New("m", graph.Layers, graph.Ties)
	if err != nil {
		return nil
	}
	var text bytes.Buffer
	if err := modelgraph.Write(&text, rebuilt); err != nil {
		return nil
	}
	read, err := modelgraph.Read(&text, "model.json")
	if err != nil {
		return nil
	}
	return read
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

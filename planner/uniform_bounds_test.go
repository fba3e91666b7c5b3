package planner_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// TestFormBounds: no cut of a form is below the form's bound. That of the model without its
// repeated units is that of the whole model, or less if the form has one stage.
func TestFormBounds(t *testing.T) {
	forms, near := 0, 0
	for _, runtime := range []string{"megatron", "torchtitan", "torch"} {
		for _, change := range []func(*costmodel.Workload){
			func(*costmodel.Workload) {},
			func(work *costmodel.Workload) { work.MicroBatches = 1 },
			func(work *costmodel.Workload) { work.MicroBatches, work.Seq = 16, 4096 },
			func(work *costmodel.Workload) { work.Recompute, work.MicroBatches = costmodel.RecomputeFull, 8 },
			func(work *costmodel.Workload) { work.Schedule, work.MicroBatches, work.Seq = costmodel.GPipe, 8, 4096 },
		} {
			problem := gridProblem(t, 8, runtime, planner.Memory)
			if runtime == "torch" {
				problem.Workload.Precision, problem.Workload.PP, problem.Workload.CP, problem.Workload.Uniform = costmodel.BF16True, 0, 0, true
				for i := range problem.Topology.Devices {
					problem.Topology.Devices[i].Host = ""
				}
			}
			change(&problem.Workload)
			if problem.Workload.Schedule == costmodel.GPipe && runtime == "megatron" {
				continue
			}
			bounds, whole, err := planner.FormBounds(t.Context(), problem)
			if err != nil {
				t.Fatal(runtime, err)
			}
			of := make(map[string]float64)
			for _, form := range whole {
				of[fmt.Sprintf("%+v", form.Workload)] = form.Below
			}
			for _, form := range bounds {
				degrees := form.Workload.DP.Count() * form.Workload.TP.Count() * form.Workload.CP.Count()
				if all := of[fmt.Sprintf("%+v", form.Workload)]; form.Below > all || form.Below < all && degrees < 8 {
					t.Errorf("%s %+v: a bound of %v without the repeated units, and of %v with all", runtime, form.Workload, form.Below, all)
				}
				one := problem
				one.Workload = form.Workload
				sol, err := planner.Solve(t.Context(), one, planner.Settings{})
				if sol == nil {
					t.Log(err)
					continue
				}
				forms++
				if form.Below > sol.LargestShare {
					t.Errorf("%s %+v: a bound of %v, and a cut has %v", runtime, form.Workload, form.Below, sol.LargestShare)
				}
				if form.Below > 0.8*sol.LargestShare {
					near++
				}
			}
		}
	}
	t.Logf("%d of %d bounds are within a fifth", near, forms)
	if forms < 150 || near < forms/10 {
		t.Errorf("of %d bounds %d are within a fifth: too few", forms, near)
	}
}

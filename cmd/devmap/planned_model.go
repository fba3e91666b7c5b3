package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// plannedModel reads the model that a plan was made for.
func plannedModel(plan *devicemap.Plan, file, model string) (*modelgraph.Graph, error) {
	place := model
	if place == "" {
		place = plan.Model.Source
	}
	graph, err := ask.ReadModel(place, ask.Reading{Transformers: plan.Model.Transformers})
	switch {
	case err != nil && model == "":
		return nil, fmt.Errorf("reading the model that %s names (--model says where else it is): %w", file, err)
	case err != nil:
		return nil, err
	case graph.Digest() != plan.Model.Digest:
		return nil, &modelgraph.SyntaxError{File: file, Place: "model.digest", Msg: fmt.Sprintf("%q is not that of %s (%s): the plan was made for another model (%q)%s", plan.Model.Digest, out.Cell(place), graph.Digest(), plan.Model.Name, mismatchText(plan, graph))}
	}
	return graph, nil
}

// mismatchText says how a model differs from the plan's, as far as can be known. A
// plan counts parameters and names modules; the model that it was made for has the
// rest, if it is still there.
func mismatchText(plan *devicemap.Plan, graph *modelgraph.Graph) string {
	var found []string
	if now := graph.ParamCount(); now != plan.Model.Params {
		found = append(found, fmt.Sprintf("it has %s, the plan's %d", show.Plural(now, "parameter"), plan.Model.Params))
	}
	if missing := missingModules(plan.DeviceMap, graph); len(missing) > 0 {
		found = append(found, "it lacks "+fewOf(missing)+" of the device map")
	}
	was, err := ask.ReadModel(plan.Model.Source, ask.Reading{Transformers: plan.Model.Transformers})
	if err == nil && was.Digest() == plan.Model.Digest {
		found = append(found, differences(was, graph)...)
	}
	if len(found) == 0 {
		return ": it has as many parameters and all modules of the device map, so that shapes, types or ties differ"
	}
	return ": " + strings.Join(found, "; ")
}

// missingModules are the keys of a map that name nothing of a model.
func missingModules(flat devicemap.Flat, graph *modelgraph.Graph) []string {
	known := map[string]bool{}
	for _, name := range graph.Hollow {
		known[name] = true
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		known[layer.Name] = true
		for at, char := range layer.Name { // the modules that hold it
			if char == '.' {
				known[layer.Name[:at]] = true
			}
		}
		for _, tensor := range slices.Concat(layer.Params, layer.Buffers) {
			known[modelgraph.FullName(layer.Name, tensor.Name)] = true
		}
	}
	var missing []string
	for _, entry := range flat {
		if !known[entry.Key] && entry.Key != "" {
			missing = append(missing, entry.Key)
		}
	}
	return missing
}

// differences are the tensors in which two models differ, and their ties.
func differences(was, now *modelgraph.Graph) []string {
	before, after := tensorsOf(was), tensorsOf(now)
	var gone, other, added []string
	for i := range before.names {
		name := before.names[i]
		switch text, there := after.texts[name]; {
		case !there:
			gone = append(gone, name)
		case text != before.texts[name]:
			other = append(other, fmt.Sprintf("%s (%s, the plan's %s)", name, text, before.texts[name]))
		}
	}
	for _, name := range after.names {
		if _, there := before.texts[name]; !there {
			added = append(added, name)
		}
	}
	var found []string
	for what, names := range map[string][]string{"it lacks the tensors ": gone, "it has besides ": added, "others are ": other} {
		if len(names) > 0 {
			found = append(found, what+fewOf(names))
		}
	}
	slices.Sort(found)
	if !slices.EqualFunc(was.Ties, now.Ties, slices.Equal) {
		found = append(found, fmt.Sprintf("its ties are %q, the plan's %q", now.Ties, was.Ties))
	}
	return found
}

// tensors are those of a model by full name, in its order, as type and shape.
type tensors struct {
	names []string
	texts map[string]string
}

func tensorsOf(graph *modelgraph.Graph) tensors {
	all := tensors{texts: map[string]string{}}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		for _, tensor := range slices.Concat(layer.Params, layer.Buffers) {
			name := modelgraph.FullName(layer.Name, tensor.Name)
			all.names = append(all.names, name)
			all.texts[name] = fmt.Sprintf("%v %v", tensor.DType, tensor.Shape)
		}
	}
	return all
}

// fewOf names the first of many.
func fewOf(names []string) string {
	const most = 3
	few := make([]string, 0, most)
	for _, name := range names[:min(most, len(names))] {
		few = append(few, out.Cell(name))
	}
	text := strings.Join(few, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// formsOf gives a table the forms that a plan's stages have, where the workload
// leaves them open.
func formsOf(graph *modelgraph.Graph, table *costmodel.Table, plan *devicemap.Plan, file string) error {
	workload := &table.Workload
	if !openDegrees(workload) {
		return nil
	}
	if plan == nil {
		return out.Usagef("--dp auto, --tp auto and --recompute auto are chosen by devmap plan: a map alone does not say the form of its stages")
	}
	for i := range plan.Stages {
		stage, recompute := &plan.Stages[i], workload.Recompute
		if recompute == recomputeAuto {
			recompute = cmp.Or(stage.Recompute, costmodel.RecomputeNone)
		}
		form, err := estimate.StageTable(graph, *workload, max(1, stage.DP), max(1, stage.TP), recompute)
		if err != nil {
			return &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("stages[%d]", i), Msg: ask.ErrorText(err)}
		}
		table.Stages = append(table.Stages, form)
	}
	return nil
}

// recomputeAuto is none or full, for each stage.
const recomputeAuto = "auto"

// openDegrees reports degrees or a recomputation that devmap chooses.
func openDegrees(workload *costmodel.Workload) bool {
	degrees := []costmodel.Degree{workload.DP, workload.TP, workload.CP, workload.EP, workload.PP}
	return slices.Contains(degrees, costmodel.AutoDegree) || workload.Recompute == recomputeAuto
}

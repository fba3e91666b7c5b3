package main

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
)

type inspectCommand struct{ *ask.Request }

func newInspect() *cobra.Command {
	command := &inspectCommand{}
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Show the units of a model: parameters, FLOPs, activations",
		Long: `Show the units of a model: parameters, bytes, FLOPs and activation memory.

A unit is a part that is never split across GPUs, such as a decoder layer. For a
GGUF file the table has the types of weights, and the KV cache of a token.`,
		Example:           "  devmap inspect config.json --mode train --batch 4",
		ValidArgsFunction: ask.CompleteModel,
		Args:              out.Exactly(1, "one MODEL"),
		RunE:              func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	return cmd
}

// inspectOutput is the output of inspect --json (devmap.inspect/v1).
type inspectOutput struct {
	FormatVersion string        `json:"format_version"`
	Model         any           `json:"model"` // as in a plan
	Units         []inspectUnit `json:"units"`
	Warnings      []string      `json:"warnings"`
}

// inspectPipeline is the model of a pipeline's folder, with components as units.
type inspectPipeline struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Class  string `json:"pipeline"`
	Params int64  `json:"params"`
}

type inspectUnit struct {
	Name            string   `json:"name"`
	Params          int64    `json:"params"`
	ParamsBytes     int64    `json:"params_bytes"`
	FLOPs           float64  `json:"flops"`
	ActivationBytes int64    `json:"activation_bytes"`
	Inputs          []string `json:"inputs"`
	// Types and KVBytesPerToken are of GGUF files: the types of tensors, and the cache of a token.
	Types           []string `json:"types,omitzero"`
	KVBytesPerToken int64    `json:"kv_bytes_per_token,omitzero"`

	buffers  int64
	declared bool
}

func (command *inspectCommand) run(cmd *cobra.Command, arg string) error {
	if ask.Serves(command.Request, load.IsGGUF(arg)) {
		return command.serve(cmd, arg)
	}
	if err := cmp.Or(ask.IdleServing(command.Request), command.Refuse()); err != nil {
		return err
	}
	if folder, builtIn := pipelineFolder(arg); folder != "" {
		if err := ask.OwnRelease(command.Request, arg); err != nil {
			return err
		}
		return command.pipeline(cmd, folder, builtIn)
	}
	arg, adapted, err := ask.Base(command.Request, arg)
	if err != nil {
		return err
	}
	workload, err := command.Workload()
	if err != nil {
		return err
	}
	graph, err := ask.ReadModel(arg, ask.ReadingOf(command.Request))
	if err != nil {
		return err
	}
	graph.Warnings = append(graph.Warnings, adapted...)
	if err := command.Lengths(graph); err != nil {
		return err
	}
	table, err := ask.Costs(graph, command.Alone(graph, workload))
	if err != nil {
		return err
	}
	model := devicemap.NewPlan(graph, table, &costmodel.Topology{}, nil, nil).Model
	notes := allWarnings(graph, table.Warnings)
	document := inspectOutput{"devmap.inspect/v1", model, inspectUnits(graph, table), notes}
	people := show.New(cmd.ErrOrStderr(), graph, table.Workload)
	people.Implied = command.Implied
	if command.JSON {
		err = devicemap.WriteJSON(cmd.OutOrStdout(), document)
	} else {
		err = people.Units(cmd.OutOrStdout(), model.Params, model.Buffers, document.table())
	}
	people.Warnings(append(notes, command.IdleNotes(&table.Workload)...))
	return err
}

// serve shows a model of llama.cpp: bytes and types of its units, and the cache of a token.
func (command *inspectCommand) serve(cmd *cobra.Command, arg string) error {
	workload, err := ask.ServingWorkload(command.Request)
	if err != nil {
		return err
	}
	if workload.Runtime != costmodel.LlamaCPP {
		return command.ranked(cmd, arg, workload)
	}
	graph, model, err := readGGUF(arg)
	if err != nil {
		return err
	}
	set := serve.SettingsOf(&workload)
	described := devicemap.NewServingPlan(graph, &workload, &costmodel.Topology{}, nil, nil).Model
	document := inspectOutput{FormatVersion: "devmap.inspect/v1", Model: described, Warnings: serve.ModelNotes(model)}
	rows := make([]show.ServedUnit, len(graph.Units))
	for i := range graph.Units {
		unit := &graph.Units[i]
		row := inspectUnit{Name: unit.Name, Inputs: []string{}}
		row.count(graph, i)
		if number := gguf.Block(unit.Name + "."); number >= 0 && number < int64(len(model.Blocks)) {
			row.KVBytesPerToken = set.PerToken(&model.Blocks[number])
		}
		document.Units = append(document.Units, row)
		rows[i] = show.ServedUnit{Name: row.Name, Params: row.Params, Bytes: row.ParamsBytes, Cache: row.KVBytesPerToken, Types: row.Types}
	}
	if command.JSON {
		err = devicemap.WriteJSON(cmd.OutOrStdout(), document)
	} else {
		err = show.ServedUnits(cmd.OutOrStdout(), servedModel(graph, model, set.KeyType), rows)
	}
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return err
}

// count adds the parameters of a unit, and their types.
func (row *inspectUnit) count(graph *modelgraph.Graph, unit int) {
	for layer := graph.Units[unit].First; layer < graph.Units[unit].End; layer++ {
		for j := range graph.Layers[layer].Params {
			tensor := &graph.Layers[layer].Params[j]
			if tensor.Owner != "" {
				continue
			}
			row.Params, row.ParamsBytes = row.Params+tensor.Numel, row.ParamsBytes+tensor.Bytes
			if name := tensor.DType.String(); !slices.Contains(row.Types, name) {
				row.Types = append(row.Types, name)
			}
		}
	}
}

// servedModel describes a model of llama.cpp.
func servedModel(graph *modelgraph.Graph, model *serving.Model, kind string) show.ServedModel {
	described := show.ServedModel{Name: graph.Name, Architecture: model.Architecture, Kind: kind, Recurrent: model.Recurrent(), Trained: model.Trained}
	if slices.ContainsFunc(model.Blocks, func(block serving.Block) bool { return block.Sliding }) {
		described.Window = model.Window
	}
	return described
}

// pipeline shows the components of a diffusion pipeline, each as one unit.
func (command *inspectCommand) pipeline(cmd *cobra.Command, folder string, builtIn fs.FS) error {
	pipeline, err := diffusers.Open(folder, builtIn)
	if err != nil {
		return err
	}
	model := inspectPipeline{Name: filepath.Base(folder), Source: folder, Class: pipeline.Class}
	document := inspectOutput{FormatVersion: "devmap.inspect/v1", Units: []inspectUnit{}, Warnings: []string{}}
	for i := range pipeline.Components {
		component := &pipeline.Components[i]
		if component.Fault != nil {
			document.Warnings = append(document.Warnings, component.Fault.Error())
			continue
		}
		graph := component.Graph
		document.Warnings = append(document.Warnings, graph.Warnings...)
		document.Units = append(document.Units, inspectUnit{Name: component.Name, Params: graph.ParamCount(), ParamsBytes: graph.ParamBytes(), Inputs: []string{}})
		model.Params += graph.ParamCount()
	}
	document.Model = model
	if command.JSON {
		err = devicemap.WriteJSON(cmd.OutOrStdout(), document)
	} else {
		err = show.Components(cmd.OutOrStdout(), pipeline)
	}
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return err
}

func inspectUnits(graph *modelgraph.Graph, table *costmodel.Table) []inspectUnit {
	out := make([]inspectUnit, len(graph.Units))
	for unitIndex := range graph.Units {
		unit, cost := &graph.Units[unitIndex], &table.Units[unitIndex]
		out[unitIndex] = inspectUnit{
			Name: unit.Name, ParamsBytes: cost.Params,
			FLOPs: cost.FLOPs, ActivationBytes: savedBytes(table, cost), Inputs: []string{}, declared: cost.Declared,
		}
		for i := unit.First; i < unit.End; i++ {
			for _, tensor := range graph.Layers[i].Owned() {
				out[unitIndex].Params += tensor.Numel
			}
			for j := range graph.Layers[i].Buffers {
				out[unitIndex].buffers += graph.Layers[i].Buffers[j].Numel
			}
		}
		for _, in := range unit.Inputs {
			out[unitIndex].Inputs = append(out[unitIndex].Inputs, graph.Units[in].Name)
		}
	}
	return out
}

// savedBytes returns the bytes that a unit's forward saves for its backward or in the KV cache: its
// regions for an arena, otherwise the sum of its events.
func savedBytes(table *costmodel.Table, unit *costmodel.Unit) int64 {
	if costmodel.StageRulesOf(table.Workload.Runtime).Arena {
		return unit.Regions.Input + unit.Regions.Saved + unit.Regions.Cache
	}
	return timeline.Of(unit).Saved
}

// table returns the rows for people.
func (output *inspectOutput) table() []show.Unit {
	rows := make([]show.Unit, len(output.Units))
	for i := range output.Units {
		unit := &output.Units[i]
		rows[i] = show.Unit{
			Name: unit.Name, Params: unit.Params, Bytes: unit.ParamsBytes, Buffers: unit.buffers,
			FLOPs: unit.FLOPs, ActivationBytes: unit.ActivationBytes, Declared: unit.declared,
		}
	}
	return rows
}

// ranked shows a model of an engine with ranks: the bytes of its units, and the cache of a token.
func (command *inspectCommand) ranked(cmd *cobra.Command, arg string, workload costmodel.Workload) error {
	of, err := readRanks(command.Request, arg, workload, &costmodel.Topology{Devices: make([]costmodel.Device, 1)})
	if err != nil {
		return err
	}
	document := inspectOutput{FormatVersion: "devmap.inspect/v1", Model: devicemap.NewServingPlan(of.graph, &workload, of.topology, nil, nil).Model, Warnings: slices.Concat([]string{}, of.graph.Warnings)}
	caches := of.question.PerToken()
	var rows []show.ServedUnit
	for i, layer := 0, 0; i < len(of.graph.Units); i++ {
		row := inspectUnit{Name: of.graph.Units[i].Name, Inputs: []string{}}
		row.count(of.graph, i)
		if of.graph.Units[i].Kind == "decoder-layer" {
			row.KVBytesPerToken = caches[layer]
			layer++
		}
		document.Units = append(document.Units, row)
		rows = append(rows, show.ServedUnit{Name: row.Name, Params: row.Params, Bytes: row.ParamsBytes, Cache: row.KVBytesPerToken, Types: row.Types})
	}
	if command.JSON {
		return devicemap.WriteJSON(cmd.OutOrStdout(), document)
	}
	err = show.ServedUnits(cmd.OutOrStdout(), show.ServedModel{Name: of.graph.Name, Architecture: of.graph.Class, Kind: workload.KVType, Trained: of.question.Model.Trained}, rows)
	show.Warnings(cmd.ErrOrStderr(), document.Warnings)
	return err
}

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// modelsOutput is devmap.models/v1.
type modelsOutput struct {
	FormatVersion string        `json:"format_version"`
	Models        []listedModel `json:"models"`
}

// listedModel is a built-in model. Type is the config's model_type, or the diffusers class of a
// pipeline.
type listedModel struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Pipeline bool     `json:"pipeline"`
	Params   int64    `json:"params"`
	HubIDs   []string `json:"hub_ids"`
}

// gpusOutput is devmap.gpus/v1. Unknown rates are left out.
type gpusOutput struct {
	FormatVersion string      `json:"format_version"`
	GPUs          []listedGPU `json:"gpus"`
}

type listedGPU struct {
	catalogue.GPU `json:",inline"`
	UsableBytes   int64 `json:"usable_bytes"`
}

// newList returns a command that prints a list, as a table or as JSON.
func newList(name, short string, list func(width int) (any, string, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: name, Short: short, Args: out.Exactly(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			document, table, err := list(out.Width(cmd.OutOrStdout()))
			if err != nil {
				return err
			}
			if asJSON {
				return devicemap.WriteJSON(cmd.OutOrStdout(), document)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), out.Readable(table))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON only, no table")
	return cmd
}

// modelsWidth is the width of the table of models. A narrower terminal gets it without the hub
// names.
const modelsWidth = 100

func listModels(width int) (any, string, error) {
	document := modelsOutput{FormatVersion: "devmap.models/v1"}
	headings := []string{"model", "type", "parameters", "name on a hub"}
	narrow := width < modelsWidth
	if narrow {
		headings = headings[:3]
	}
	table := texttab.New(headings...)
	table.Right(2)
	for _, name := range load.Names(fixtures.Models()) {
		row, err := listed(name)
		if err != nil {
			return nil, "", err
		}
		document.Models = append(document.Models, row)
		kind, id := row.Type, "–"
		if row.Pipeline {
			kind = "diffusion"
		}
		if len(row.HubIDs) > 0 {
			id = row.HubIDs[0]
		}
		const widest = 38
		if len(id) > widest { // limits the table to 100 columns
			id = strings.Replace(id, "/", "/\n", 1)
		}
		table.Row([]any{name, kind, fmt.Sprintf("%.2f B", float64(row.Params)/1e9), id}[:len(headings)]...)
	}
	below := "A tuned model of the same organisation often has the same config (Qwen/Qwen2.5-7B-Instruct);\ndevmap models --json lists every name and the class of each pipeline."
	if narrow {
		below = out.Wrap(strings.ReplaceAll(below, "\n", " "), width)
	}
	return document, table.String() + "\n" + below, nil
}

// listed returns the row of a built-in model.
func listed(name string) (listedModel, error) {
	row := listedModel{Name: name, HubIDs: append([]string{}, ask.HubIDs(name)...)}
	if _, builtIn := pipelineFolder(name); builtIn != nil {
		pipeline, err := diffusers.Open(name, builtIn)
		if err != nil {
			return row, err
		}
		row.Type, row.Pipeline = pipeline.Class, true
		for i := range pipeline.Components {
			if fault := pipeline.Components[i].Fault; fault != nil {
				return row, fault
			}
			row.Params += pipeline.Components[i].Graph.ParamCount()
		}
		return row, nil
	}
	graph, err := ask.ReadModel(name)
	if err != nil {
		return row, err
	}
	row.Type = graph.Family
	config := struct {
		Type string `json:"model_type"`
	}{graph.Family}
	if err := json.Unmarshal(graph.Config, &config); err == nil {
		row.Type = config.Type // two types of one family
	}
	for i := range graph.Layers {
		for _, tensor := range graph.Layers[i].Owned() {
			switch {
			case strings.HasSuffix(tensor.Name, "_scales") || strings.HasSuffix(tensor.Name, "_scale_inv"): // of quantized weights
			case strings.HasSuffix(tensor.Name, "_blocks") && tensor.DType.String() == "U8": // two weights per byte
				row.Params += 2 * tensor.Numel
			default:
				row.Params += tensor.Numel
			}
		}
	}
	return row, nil
}

func listGPUs(int) (any, string, error) {
	document := gpusOutput{FormatVersion: "devmap.gpus/v1"}
	table := texttab.New("GPU", "sold as\n    GB", "usable\n   GiB", "bf16\nTFLOPS", "memory\n  GB/s", "link\nGB/s", "compute\ncapability")
	table.Right(1, 2, 3, 4, 5)
	for _, name := range catalogue.Names() {
		gpu, err := catalogue.Find(name)
		if err != nil {
			return nil, "", err
		}
		usable := gpu.CapacityBytes - gpu.ReservedBytes
		document.GPUs = append(document.GPUs, listedGPU{gpu, usable})
		rate := rateOf(gpu.BF16FLOPS, 1e12)
		if gpu.FP16FLOPS > 0 {
			rate = rateOf(gpu.FP16FLOPS, 1e12) + "*"
		}
		table.Row(name, gpu.SoldGB, fmt.Sprintf("%.2f", float64(usable)/(1<<30)), rate, rateOf(gpu.BytesPerSecond, 1e9), rateOf(gpu.LinkBytesPerSecond, 1e9), gpu.ComputeCapability)
	}
	return document, table.String() + "\n–: no published figure is known here, so no step time is predicted\n*: fp16; PyTorch emulates bf16 there" +
		"\ndevmap gpus --json has the source of each figure; for any other GPU its size is enough:\n--gpus 4x48GiB", nil
}

// rateOf formats a rate in a unit for a table.
func rateOf(rate, unit float64) string {
	if rate == 0 {
		return "–"
	}
	return fmt.Sprintf("%.4g", rate/unit)
}

package probe

import (
	"strconv"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// timedModels are the models to time: blocks as wide as in a model of one to three billion
// parameters, with both usual widths of heads.
var timedModels = []string{
	`{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":2,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":32768,"tie_word_embeddings":true,"max_position_embeddings":4096}`,
	`{"model_type":"llama","hidden_size":2048,"intermediate_size":11008,"num_hidden_layers":2,"num_attention_heads":16,"num_key_value_heads":4,"vocab_size":32768,"tie_word_embeddings":true,"max_position_embeddings":4096}`,
}

// wideModel is a model whose forward is almost all products, which take the most power. They are
// so many FLOPs for wideBatch sequences.
const (
	wideModel    = `{"model_type":"llama","hidden_size":8192,"intermediate_size":28672,"num_hidden_layers":2,"num_attention_heads":64,"num_key_value_heads":8,"vocab_size":32768,"tie_word_embeddings":true,"max_position_embeddings":4096}`
	wideBatch    = 4
	wideProducts = 2. * wideBatch * 2048 * (2*(2*8192*8192+2*8192*1024+3*8192*28672) + 32768*8192)
)

// usageModel is the model that shows a process's memory outside arenas. It has every kernel of a
// block, and a layer for each device.
func usageModel(layers int) string {
	return `{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":` + strconv.Itoa(layers) + `,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":4096,"tie_word_embeddings":true,"max_position_embeddings":4096}`
}

// probeJob compiles a model for devices, with equal runs of units on them.
func probeJob(config string, workload costmodel.Workload, topology *costmodel.Topology) (*executor.Job, error) {
	graph, err := hf.FromConfig("probe", []byte(config))
	if err != nil {
		return nil, err
	}
	devices := len(topology.Devices)
	workload.Runtime, workload.Optimizer = costmodel.Devmap, costmodel.AdamW
	workload.Strategy = costmodel.DeviceMap
	if devices > 1 {
		workload.Strategy, workload.Schedule, workload.World = costmodel.Pipeline, costmodel.OneFOneB, int64(devices)
	}
	table, err := ask.Costs(graph, workload)
	if err != nil {
		return nil, err
	}
	placement := make(devicemap.Map, len(graph.Units))
	for unit := range placement {
		placement[unit] = devicemap.Device(unit * devices / len(placement))
	}
	program, err := compile.Program(graph, table, topology, placement, nil)
	if err != nil {
		return nil, err
	}
	kernels, err := recipe.Of(graph, &table.Workload)
	if err != nil {
		return nil, err
	}
	return &executor.Job{Graph: graph, Workload: &table.Workload, Recipe: kernels, Program: program}, nil
}

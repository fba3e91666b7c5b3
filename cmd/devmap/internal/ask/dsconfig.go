package ask

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// isSet reports the fields that a preset leaves alone: those that the flags or
// --ds-config set, and the strategy of commands that have one without it.
func isSet(request *Request, workload *costmodel.Workload) func(field string) bool {
	estimates := request.cmd.Name() == "estimate" && !request.Given("strategy") && request.work.DeepSpeed == nil
	if estimates {
		workload.Strategy = costmodel.Auto
	}
	return func(field string) bool {
		return given(request.cmd.Flags(), strings.ReplaceAll(field, "_", "-")) ||
			field == "strategy" && (request.cmd.Name() != "plan" || request.work.DeepSpeed != nil) ||
			configures(workload, field)
	}
}

// configures reports a field that --ds-config says. What it leaves open or "auto"
// Transformers fills in from its own arguments (transformers/integrations/
// deepspeed.py, trainer_config_process).
func configures(workload *costmodel.Workload, field string) bool {
	if workload.DeepSpeed == nil {
		return false
	}
	asked := &workload.DeepSpeed.Asked
	switch field {
	case "batch":
		return asked.MicroBatch > 0 || asked.TrainBatch > 0
	case "micro_batches":
		return asked.Accumulation > 0 || asked.TrainBatch > 0
	case "optimizer":
		return asked.Optimizer != ""
	case "precision":
		return asked.Section != ""
	}
	return false
}

// configured is the workload that the flags ask for on top of the
// configuration file of --ds-config: what they leave open the file says, its
// stage the strategy.
func (request *Request) configured() (costmodel.Workload, error) {
	name, text, err := deepSpeedOf(request)
	if text == nil || err != nil {
		return request.work, err
	}
	if err := request.work.ReadDeepSpeed(strings.TrimPrefix(name, "--ds-config "), text); err != nil {
		return request.work, err
	}
	work := request.work
	if !request.Given("batch") {
		work.Batch = 0
	}
	if !request.Given("micro-batches") {
		work.MicroBatches = 0
	}
	if !request.Given("optimizer") {
		work.Optimizer = ""
	}
	stage := costmodel.Strategy(fmt.Sprintf("zero%d", work.DeepSpeed.Stage))
	if request.Given("strategy") && work.Strategy != stage {
		return work, out.Usagef("--strategy %s contradicts %s, whose zero_optimization.stage is %d: --strategy %s works, or left out", work.Strategy, name, work.DeepSpeed.Stage, stage)
	}
	work.Strategy = stage
	return work, nil
}

// deepSpeedOf is DeepSpeed's configuration: the file of --ds-config, or the section of
// a training program's file. No text: there is none.
func deepSpeedOf(request *Request) (name string, text []byte, err error) {
	if request.dsConfig != "" {
		text, err = modelgraph.ReadSmall(request.dsConfig, "a DeepSpeed configuration", maxConfigBytes)
		return "--ds-config " + request.dsConfig, text, err
	}
	if !isFile(request.work.Preset) {
		return "", nil, nil
	}
	read, err := readTrainerFile(request.work.Preset)
	if err != nil {
		return "", nil, err
	}
	return read.name + ": deepspeed", read.inline, nil
}

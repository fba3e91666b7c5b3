package ask

import (
	"fmt"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// configured is the workload that the flags ask for on top of the
// configuration file of --ds-config: what they leave open the file says, its
// stage the strategy.
func (request *Request) configured() (costmodel.Workload, error) {
	if request.dsConfig == "" {
		return request.work, nil
	}
	text, err := modelgraph.ReadSmall(request.dsConfig, "a DeepSpeed configuration", maxConfigBytes)
	if err != nil {
		return request.work, err
	}
	if err := request.work.ReadDeepSpeed(request.dsConfig, text); err != nil {
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
		return work, out.Usagef("--strategy %s contradicts --ds-config %s, whose zero_optimization.stage is %d: --strategy %s works, or left out", work.Strategy, request.dsConfig, work.DeepSpeed.Stage, stage)
	}
	work.Strategy = stage
	return work, nil
}

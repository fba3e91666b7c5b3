package probe

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
)

// tally is what kernels of each kind did in a step, and in what time: of all models
// that were timed together.
type tally struct {
	products, attention, others, updates work
	// gaps are the seconds of a device's instructions that no kernel took, of so many
	// kernels; passes of these are no optimizer's.
	gaps, kernels, passes float64
}

// add adds what another counted in so many steps, the step's gaps aside.
func (tally *tally) add(counted *tally, steps float64) {
	for _, of := range [][2]*work{{&tally.products, &counted.products}, {&tally.attention, &counted.attention}, {&tally.others, &counted.others}, {&tally.updates, &counted.updates}} {
		of[0].amount, of[0].seconds = of[0].amount+of[1].amount/steps, of[0].seconds+of[1].seconds/steps
	}
	tally.kernels, tally.passes = tally.kernels+counted.kernels/steps, tally.passes+counted.passes/steps
}

// tallies are a GPU's: of models in bf16, of the same on fewer tokens, and in fp32.
type tallies struct{ half, less, single tally }

// work is FLOPs or bytes, and the seconds that they took.
type work struct{ amount, seconds float64 }

func (work *work) add(amount float64, took time.Duration) {
	work.amount, work.seconds = work.amount+amount, work.seconds+took.Seconds()
}

// rate is 0 where nothing ran.
func (work *work) rate() float64 {
	if work.seconds <= 0 {
		return 0
	}
	return work.amount / work.seconds
}

// apart splits the time of kernels by the same kernels at less work: into a rate, and
// the fixed seconds that each takes to fill the GPU and to leave it.
func (work *work) apart(less *work) (rate, fixed float64) {
	rate = (work.amount - less.amount) / (work.seconds - less.seconds)
	if fixed = less.seconds - less.amount/rate; less.amount >= work.amount || less.seconds >= work.seconds || fixed < 0 {
		return work.rate(), 0
	}
	return rate, fixed
}

// timing is the runs of one model. Some steps are timed kernel by kernel. The others
// give the time between kernels, which timing them would add to.
type timing struct {
	tally // of all steps that are timed

	updating map[string]bool // the optimizer's kernels, by name
	now      float64         // seconds of all kernels of the step
}

// The steps of a model that is timed: of the second half every other one. A GPU is
// faster for the first tenths of a second than it stays, as its clock goes by the
// power that it takes: what a step takes among others is to be found.
const (
	halfSteps   = 39
	singleSteps = 13 // in fp32 a step is several times as long
)

// tell takes a kernel.
func (timing *timing) tell(timed executor.KernelTime) {
	kernel := timed.Kernel
	timing.now += timed.Took.Seconds()
	timing.kernels++
	timing.passes++
	switch {
	case timing.updating[kernel.Name]:
		timing.updates.add(kernel.Bytes, timed.Took)
		timing.passes--
	case kernel.Products > 0:
		timing.products.add(kernel.Products, timed.Took)
	case kernel.Attention > 0:
		timing.attention.add(kernel.Attention, timed.Took)
	default:
		timing.others.add(kernel.Bytes, timed.Took)
	}
}

// run runs a job on a GPU and adds its kernels up.
func (tally *tally) run(ctx context.Context, gpu int, job *executor.Job, steps int64) error {
	timing := &timing{updating: updating(job.Recipe)}
	isTimed := func(step int64) bool { return step > steps/2 && step%2 == 1 }
	backend, err := backends.GPU(executor.GPUOptions{Devices: []int{gpu}, Clock: func(step int64) func(timed executor.KernelTime) {
		if !isTimed(step) {
			return nil
		}
		return timing.tell
	}})
	if err != nil {
		return err
	}
	settings := executor.Settings{Steps: steps, Weights: repeatedWeights(job.Graph), Optimizer: probeOptimizer}
	var busy, timed []float64
	settings.Watch.Step = func(step *executor.StepResult) {
		if isTimed(step.Number) {
			timed, timing.now = append(timed, timing.now), 0
			return
		}
		if step.Number <= steps/2 {
			return
		}
		for _, device := range step.Times.Devices {
			busy = append(busy, (device.Forward + device.Backward + device.Decode + device.Update).Seconds())
		}
	}
	if _, err := executor.Run(ctx, backend, job, &settings); err != nil {
		return err
	}
	if len(timed) == 0 || timing.kernels == 0 {
		return errors.New("no kernel was timed")
	}
	tally.gaps += max(middle(busy)-middle(timed), 0)
	tally.add(&timing.tally, float64(len(timed)))
	return nil
}

// middle is the median, the upper one of two.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// updating are the names of the optimizer's kernels.
func updating(model *recipe.Model) map[string]bool {
	names := make(map[string]bool)
	for i := range model.Units {
		for _, routine := range []*recipe.Routine{&model.Units[i].Code.Norms, &model.Units[i].Code.Step} {
			for j := range routine.Kernels {
				names[routine.Kernels[j].Name] = true
			}
		}
	}
	return names
}

// ratesOf are the rates of devmap's engine on a GPU, whose kernels are those of
// models trained in bf16 at much work and at less, and in fp32.
func ratesOf(measured *tallies) (flops float64, rates costmodel.Rates) {
	half, less, single := &measured.half, &measured.less, &measured.single
	var products, attention, others float64 // seconds
	flops, products = half.products.apart(&less.products)
	rates.AttentionFLOPS, attention = half.attention.apart(&less.attention)
	rates.BytesPerSecond, others = half.others.apart(&less.others)
	rates.UpdateBytesPerSecond = half.updates.rate()
	rates.FP32FLOPS, rates.FP32UpdateBytesPerSecond = single.products.rate(), single.updates.rate()
	rates.KernelSeconds = half.gaps/half.kernels + (products+attention+others)/half.passes
	return flops, rates
}

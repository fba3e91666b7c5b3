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

// tally is the work and the time of each kind of kernel in a step, of all models that were timed
// together.
type tally struct {
	products, attention, others, updates work
	// gaps are the seconds of a device's instructions without a kernel, and kernels is their
	// number. passes counts the kernels that are not the optimizer's.
	gaps, kernels, passes float64
}

// add adds the counts of steps steps, except the gaps.
func (tally *tally) add(counted *tally, steps float64) {
	for _, of := range [][2]*work{{&tally.products, &counted.products}, {&tally.attention, &counted.attention}, {&tally.others, &counted.others}, {&tally.updates, &counted.updates}} {
		of[0].amount, of[0].seconds = of[0].amount+of[1].amount/steps, of[0].seconds+of[1].seconds/steps
	}
	tally.kernels, tally.passes = tally.kernels+counted.kernels/steps, tally.passes+counted.passes/steps
}

// tallies are a GPU's counts: of models in bf16, of the same with fewer tokens, in fp32, and of
// products in bf16 at the limit of power.
type tallies struct{ half, less, single, sustained tally }

// work is FLOPs or bytes, and the seconds that they took.
type work struct{ amount, seconds float64 }

func (work *work) add(amount float64, took time.Duration) {
	work.amount, work.seconds = work.amount+amount, work.seconds+took.Seconds()
}

// rate returns 0 if nothing ran.
func (work *work) rate() float64 {
	if work.seconds <= 0 {
		return 0
	}
	return work.amount / work.seconds
}

// apart splits the time of kernels by the same kernels with less work. It returns a rate, and the
// fixed seconds that each kernel takes to fill and empty the GPU.
func (work *work) apart(less *work) (rate, fixed float64) {
	rate = (work.amount - less.amount) / (work.seconds - less.seconds)
	if fixed = less.seconds - less.amount/rate; less.amount >= work.amount || less.seconds >= work.seconds || fixed < 0 {
		return work.rate(), 0
	}
	return rate, fixed
}

// timing is the runs of one model. Some steps are timed kernel by kernel. The others give the time
// between kernels, which timing would increase.
type timing struct {
	tally // of all timed steps

	updating map[string]bool // the optimizer's kernels, by name
	now      float64         // seconds of all kernels of the step
}

// These are the numbers of steps; every other step of the second half is timed. A GPU is faster in
// the first tenths of a second, as its clock depends on its power. The probe needs the later speed.
const (
	halfSteps   = 39
	singleSteps = 13 // in fp32 a step takes several times as long

	settlingSeconds = 3 // of products until the GPU's power is steady
)

// settling is how many forwards of [wideModel] take so many seconds.
func (tally *tally) settling() int64 {
	return int64(min(max(settlingSeconds*tally.products.rate()/wideProducts, 4), 1e4))
}

// tell records a kernel.
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

// run runs a job on a GPU and adds its kernels.
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
	settings := executor.Settings{Steps: steps, Weights: repeatedWeights(job.Graph)}
	if job.Workload.Mode == costmodel.Train {
		settings.Optimizer = probeOptimizer
	}
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

// middle returns the median, the upper one of two.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// updating returns the names of the optimizer's kernels.
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

// ratesOf returns the rates of devmap's engine on a GPU, from kernels of models trained in bf16
// with much and with less work, and in fp32.
func ratesOf(measured *tallies) (flops float64, rates costmodel.Rates) {
	half, less, single := &measured.half, &measured.less, &measured.single
	var products, attention, others float64 // seconds
	flops, products = half.products.apart(&less.products)
	rates.AttentionFLOPS, attention = half.attention.apart(&less.attention)
	rates.BytesPerSecond, others = half.others.apart(&less.others)
	rates.SustainedFLOPS = measured.sustained.products.rate()
	rates.UpdateBytesPerSecond = half.updates.rate()
	rates.FP32FLOPS, rates.FP32UpdateBytesPerSecond = single.products.rate(), single.updates.rate()
	rates.KernelSeconds = half.gaps/half.kernels + (products+attention+others)/half.passes
	return flops, rates
}

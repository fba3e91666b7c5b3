package watching

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/gpuusage"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/watch"
)

// Baseline is the used memory of a command's GPUs before it starts, and the readings while it runs.
type Baseline struct {
	reader   watch.Reader
	outside  *gpuusage.Outside
	document certify.Document
}

// NewBaseline reads the GPUs of a command before it starts, by its CUDA_VISIBLE_DEVICES, until
// their usage is stable. whose has the command's processes.
func NewBaseline(whose *watch.Tree, list string, set bool) (*Baseline, error) {
	reader, err := watch.Open()
	if err != nil {
		return nil, err
	}
	baseline := &Baseline{reader: reader}
	if err := baseline.find(list, set); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	baseline.outside = gpuusage.NewOutside(reader, nil, func(_ string, process int) (ours, here bool) { return whose.Has(process) })
	return baseline, nil
}

// find finds the GPUs.
func (baseline *Baseline) find(list string, set bool) error {
	gpus := baseline.reader.GPUs()
	seen, err := watch.Visible(list, set, gpus)
	if err != nil {
		return err
	}
	if len(seen) == 0 {
		return fmt.Errorf("--baseline: the command sees none of the machine's %d GPUs, by CUDA_VISIBLE_DEVICES", len(gpus))
	}
	for number, at := range seen {
		if gpu := &gpus[at]; gpu.Cut {
			return fmt.Errorf("GPU %d (%s, %s) is in MIG mode, which devmap cannot measure; disable it with nvidia-smi -mig 0", at, gpu.Name, gpu.UUID)
		}
		baseline.document.GPUs = append(baseline.document.GPUs, certify.GPU{MonitoredGPU: executor.MonitoredGPU{GPU: number, UUID: gpus[at].UUID, Name: gpus[at].Name}})
	}
	return nil
}

// Close ends the readings.
func (baseline *Baseline) Close() {
	if baseline != nil {
		baseline.reader.Close() //nolint:errcheck // nothing was written
	}
}

// Judge compares the GPUs after the command ended with those before, and refills them if this build
// can. ended says how the command ended. A worker does the refill, so that this process has no
// context.
func (baseline *Baseline) Judge(ctx context.Context, ended string) *certify.Document {
	document := &baseline.document
	var uuids []string
	for i := range document.GPUs {
		uuids = append(uuids, document.GPUs[i].UUID)
	}
	document.After = baseline.outside.End(uuids, ended)
	if err := backends.Built(); err == nil {
		baseline.refill(ctx, uuids)
		baseline.outside.Again()
	}
	for i := range document.GPUs {
		baseline.outside.Tell(&document.GPUs[i])
	}
	document.JudgeLeft()
	return document
}

// refill starts a worker that refills GPUs.
func (baseline *Baseline) refill(ctx context.Context, uuids []string) {
	missing := ""
	process, err := worker.Start(ctx, append([]string{"watch", "--baseline", "--"}, uuids...), io.Discard, io.Discard)
	if err == nil {
		missing, err = baseline.hear(process)
		how, waited := process.Wait()
		if err = errors.Join(err, waited); err == nil && missing == "" && len(baseline.document.Refill) < len(uuids) {
			missing = "the process that was to refill the GPUs ended: " + how
		}
	}
	if err != nil {
		missing = err.Error()
	}
	for i := range baseline.document.GPUs {
		gpu := &baseline.document.GPUs[i]
		done := slices.ContainsFunc(baseline.document.Refill, func(one certify.Refill) bool { return one.GPU == gpu.GPU })
		if !done {
			baseline.document.Refill = append(baseline.document.Refill, certify.Refill{GPU: gpu.GPU, Error: strings.ReplaceAll(missing, "\n", "; ")})
		}
	}
}

// hear reads the worker's messages; missing says why it could not refill.
func (baseline *Baseline) hear(process *worker.Process) (missing string, err error) {
	numbers := make(map[int]int) // of the worker's GPUs, on this machine
	for {
		message, err := process.Next()
		if errors.Is(err, io.EOF) {
			return missing, nil
		}
		if err != nil {
			process.Kill() //nolint:errcheck // it has ended then
			return missing, err
		}
		switch observation := message.Witnessed; {
		case message.Missing != "":
			missing = message.Missing
		case message.Broke != "":
			missing = message.Broke
		case observation == nil:
		case observation.GPUs != nil:
			for _, gpu := range observation.GPUs {
				at := slices.IndexFunc(baseline.document.GPUs, func(one certify.GPU) bool { return one.UUID == gpu.UUID })
				if at < 0 {
					return missing, fmt.Errorf("the process that refills GPUs is on %s, which it was not asked for", gpu.UUID)
				}
				numbers[gpu.GPU], gpu.GPU = at, at
				baseline.document.GPUs[at].MonitoredGPU = gpu
			}
		default:
			for _, one := range observation.Refill {
				one.GPU = numbers[one.GPU]
				baseline.document.Refill = append(baseline.document.Refill, one)
			}
		}
	}
}

// Refill refills GPUs, by UUID, as a worker.
func Refill(link *worker.Link, uuids []string) error {
	gpus, err := backends.GPUs()
	if err != nil {
		link.Say(&worker.Message{Missing: err.Error()})
		return nil //nolint:nilerr // the supervisor tells it
	}
	var ordinals []int
	for _, uuid := range uuids {
		at := slices.IndexFunc(gpus, func(gpu executor.GPU) bool { return gpu.UUID == uuid })
		if at < 0 {
			link.Say(&worker.Message{Missing: "the driver shows no " + uuid})
			return nil
		}
		ordinals = append(ordinals, at)
	}
	observer, err := backends.Observer(ordinals)
	if err == nil {
		err = errors.Join(refill(observer, link), observer.Close())
	}
	if err != nil {
		link.Say(&worker.Message{Broke: err.Error()})
	}
	return nil
}

// refill refills the GPUs of a monitor.
func refill(observer executor.GPUMonitor, link *worker.Link) error {
	gpus := observer.GPUs()
	link.Say(&worker.Message{Witnessed: &certify.Observation{GPUs: gpus}})
	for i := range gpus {
		done, err := observer.Refill(i, certify.Margin)
		if err != nil {
			return err
		}
		link.Say(&worker.Message{Witnessed: &certify.Observation{Refill: []certify.Refill{certify.Filled(0, gpus[i].GPU, &done)}}})
	}
	return nil
}

package main

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/gpuusage"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// certifyCycles is how many cycles a certificate takes at least: of fewer a slope says
// little.
const certifyCycles = 5

// certified checks --cycles against --certify.
func (command *runCommand) certified() error {
	switch {
	case !command.Run.Certify:
	case !command.Given("cycles"):
		command.Run.Cycles = certifyCycles
	case command.Run.Cycles < certifyCycles:
		return out.Usagef("--certify --cycles %d: that memory does not grow is seen over %d cycles or more", command.Run.Cycles, certifyCycles)
	}
	return nil
}

// gpuObserver looks at the GPUs of a worker whose run is to be certified. It is empty
// until the first arena is to be mapped, and in any other run.
type gpuObserver struct {
	seen     executor.GPUMonitor
	recorder *certify.Recorder
}

// begin begins to look at the GPUs of all plans.
func (observer *gpuObserver) begin(link *worker.Link, runs []planRun) (err error) {
	var gpus []int
	for i := range runs {
		gpus = append(gpus, runs[i].gpus...)
	}
	slices.Sort(gpus)
	if observer.seen, err = backends.Observer(slices.Compact(gpus)); err != nil {
		return fmt.Errorf("--certify: %w", err)
	}
	observer.recorder = certify.NewRecorder(observer.seen, func(seen *certify.Observation) { link.Say(&worker.Message{Witnessed: seen}) })
	return nil
}

// close releases what looking took.
func (observer *gpuObserver) close() error {
	if observer.seen == nil {
		return nil
	}
	return observer.seen.Close()
}

// poisoned receives each arena that is read back before it is released.
func (observer *gpuObserver) poisoned(device int32, bytes int64, wrong bool) {
	observer.recorder.Poisoned(device, bytes, wrong)
}

// look looks at what a turn leaves on the GPUs.
func (observer *gpuObserver) look(turn *turn, since time.Time) error {
	if observer.recorder == nil {
		return nil
	}
	end := certify.Closed
	if turn.keeps {
		end = certify.Asleep
	}
	return observer.recorder.Unloaded(certify.Unload{Cycle: turn.cycle, Of: turn.of, Plan: turn.file, End: end}, turn.ends, since)
}

// certifier is what a supervisor knows of the memory that is left on GPUs.
type certifier struct {
	outside *gpuusage.Outside
	worker  int // its number here

	lock     sync.Mutex // of document, until the worker has ended
	document certify.Document
}

// newCertificate looks at what GPUs hold before the worker is there.
func newCertificate() *certifier {
	made := new(certifier)
	reader, err := watch.Open()
	made.outside = gpuusage.NewOutside(reader, err, made.whose)
	return made
}

// take enters what the worker saw.
func (made *certifier) take(seen *certify.Observation) {
	made.lock.Lock()
	defer made.lock.Unlock()
	made.document.Take(seen)
}

// whose reports whether a process on a GPU is the worker, by the number that the
// worker found for its own process there. In a container that is not the system's number.
func (made *certifier) whose(uuid string, process int) (ours, here bool) {
	made.lock.Lock()
	defer made.lock.Unlock()
	number := made.worker
	for i := range made.document.GPUs {
		if gpu := &made.document.GPUs[i]; gpu.UUID == uuid && gpu.Process != 0 {
			number = gpu.Process
		}
	}
	return number != 0 && process == number, true
}

// started sets the process to look at.
func (made *certifier) started(process int) {
	if made == nil {
		return
	}
	made.lock.Lock()
	defer made.lock.Unlock()
	made.worker = process
}

// certify judges what the worker left, and prints the certificate. how is how it ended,
// broke why it did not come to its end; empty: it did.
func (run *supervised) certify(how, broke string) error {
	if run.certificate == nil || len(run.certificate.document.GPUs) == 0 {
		return nil
	}
	document := &run.certificate.document
	var uuids []string
	for i := range document.GPUs {
		uuids = append(uuids, document.GPUs[i].UUID)
	}
	document.After = run.certificate.outside.End(uuids, how)
	for i := range document.After.GPUs {
		document.After.GPUs[i].GPU = document.GPUs[i].GPU
	}
	for i := range document.GPUs {
		run.certificate.outside.Tell(&document.GPUs[i])
	}
	document.JudgeRun(broke)
	var written, text bytes.Buffer
	if err := devicemap.WriteJSON(&written, document); err != nil {
		return err
	}
	show.Certified(&text, document)
	return run.print(written.String(), text.String())
}

// uncertified is how a command ends that was to be certified and is not.
func (run *supervised) uncertified() error {
	if run.certificate == nil || run.certificate.document.Verdict == report.Pass {
		return nil
	}
	return out.ErrCheck
}

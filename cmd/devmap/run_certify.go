package main

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/held"
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

// certified holds --cycles to --certify.
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

// witnessing is what a worker whose run is to be certified sees of its GPUs. It is empty
// until the first arena is to be mapped, and in any other run.
type witnessing struct {
	seen     executor.GPUMonitor
	recorder *certify.Recorder
}

// begin begins to look at the GPUs of all plans.
func (witness *witnessing) begin(link *worker.Link, runs []planRun) (err error) {
	var gpus []int
	for i := range runs {
		gpus = append(gpus, runs[i].gpus...)
	}
	slices.Sort(gpus)
	if witness.seen, err = backends.Witness(slices.Compact(gpus)); err != nil {
		return fmt.Errorf("--certify: %w", err)
	}
	witness.recorder = certify.NewRecorder(witness.seen, func(told *certify.Told) { link.Say(&worker.Message{Witnessed: told}) })
	return nil
}

// close gives back what looking took.
func (witness *witnessing) close() error {
	if witness.seen == nil {
		return nil
	}
	return witness.seen.Close()
}

// poisoned is told of each arena that is read back before it is given back.
func (witness *witnessing) poisoned(device int32, bytes int64, wrong bool) {
	witness.recorder.Poisoned(device, bytes, wrong)
}

// look looks at what is left behind a turn.
func (witness *witnessing) look(turn *turn, since time.Time) error {
	if witness.recorder == nil {
		return nil
	}
	end := certify.Closed
	if turn.keeps {
		end = certify.Asleep
	}
	return witness.recorder.Unloaded(certify.Unload{Cycle: turn.cycle, Of: turn.of, Plan: turn.file, End: end}, turn.ends, since)
}

// certifying is what a supervisor knows of what is left on GPUs.
type certifying struct {
	outside *held.Outside
	worker  int // its number here

	lock     sync.Mutex // of document, until the worker has ended
	document certify.Document
}

// newCertificate looks at what GPUs hold before the worker is there.
func newCertificate() *certifying {
	made := new(certifying)
	reader, err := watch.Open()
	made.outside = held.NewOutside(reader, err, made.whose)
	return made
}

// take enters what the worker saw.
func (made *certifying) take(told *certify.Told) {
	made.lock.Lock()
	defer made.lock.Unlock()
	made.document.Take(told)
}

// whose says of a process on a GPU whether it is the worker: by the number that it
// found for itself there, inside a container another than the system's.
func (made *certifying) whose(uuid string, process int) (ours, here bool) {
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

// begun tells which process is looked at.
func (made *certifying) begun(process int) {
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

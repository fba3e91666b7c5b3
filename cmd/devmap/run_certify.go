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

// certifyCycles is the least number of cycles for a certificate: fewer show no growth reliably.
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

// gpuObserver monitors the GPUs of a worker with a certificate. It is empty until the first arena
// is mapped, and in any other run.
type gpuObserver struct {
	seen     executor.GPUMonitor
	recorder *certify.Recorder
}

// begin starts to monitor the GPUs of all plans.
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

// close releases the monitor.
func (observer *gpuObserver) close() error {
	if observer.seen == nil {
		return nil
	}
	return observer.seen.Close()
}

// poisoned receives each arena that is read back before its release.
func (observer *gpuObserver) poisoned(device int32, bytes int64, wrong bool) {
	observer.recorder.Poisoned(device, bytes, wrong)
}

// look reads the memory left on the GPUs after a turn.
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

// certifier collects a supervisor's evidence about memory left on GPUs.
type certifier struct {
	outside *gpuusage.Outside
	worker  int // process number on this machine

	lock     sync.Mutex // protects document until the worker has ended
	document certify.Document
}

// newCertificate reads the GPUs' memory before the worker starts.
func newCertificate() *certifier {
	made := new(certifier)
	reader, err := watch.Open()
	made.outside = gpuusage.NewOutside(reader, err, made.whose)
	return made
}

// take records a worker's reading.
func (made *certifier) take(seen *certify.Observation) {
	made.lock.Lock()
	defer made.lock.Unlock()
	made.document.Take(seen)
}

// whose reports whether a process on a GPU is the worker, by the number that the worker found for
// its own process there. In a container it differs from the system's number.
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

// certify judges the memory left by the worker, and prints the certificate. how says how it ended.
// broke says why it failed; empty: it did not.
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

// uncertified returns the command's error if the certificate was requested and did not pass.
func (run *supervised) uncertified() error {
	if run.certificate == nil || run.certificate.document.Verdict == report.Pass {
		return nil
	}
	return out.ErrCheck
}

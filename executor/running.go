package executor

import (
	"errors"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
)

// sessionState is the state that one turn of a session passes to the next.
type sessionState struct {
	job       *Job
	bound     *bind.Bound
	passes    []pass // of the job's head
	machine   Machine
	asleep    bool  // the machine
	done      int64 // steps, with those of an earlier run
	generated int64 // sequences
}

// close closes the machine, if there is one.
func (state *sessionState) close() error {
	machine := state.machine
	state.machine, state.asleep = nil, false
	if machine == nil {
		return nil
	}
	return machine.Close()
}

// running is a turn that runs.
type running struct {
	*sessionState

	settings *Settings
	result   *Result
	source   weights.Source // nil when it is closed
	taps     map[Tap]func() error
	files    []*weights.File // they appear when everything else is done
}

// closeSource closes the weights when everything is loaded, or when the run fails before.
func (run *running) closeSource() error {
	source := run.source
	if run.source = nil; source == nil {
		return nil
	}
	return source.Close()
}

// otherThan returns an error of closing. It is nil if it names the same changed file again.
func otherThan(err, closing error) error {
	var first, again *weights.ChangedError
	if errors.As(err, &first) && errors.As(closing, &again) && first.File == again.File {
		return nil
	}
	return closing
}

// create adds a file that appears when the run is done.
func (run *running) create(file *weights.File, err error) (*weights.File, error) {
	if err == nil {
		run.files = append(run.files, file)
	}
	return file, err
}

// commit makes all files appear. discard removes those that have not appeared.
func (run *running) commit() error {
	for _, file := range run.files {
		if err := file.Commit(); err != nil {
			return err
		}
	}
	return nil
}

func (run *running) discard() error {
	var all []error
	for _, file := range run.files {
		all = append(all, file.Discard())
	}
	return errors.Join(all...)
}

//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// losses is the error of a step in which a context came to be no more. Where one fails a
// driver ends all that the process has, a tenth of a second later, so that whichever was
// asked first says nothing of where it happened. By then the others stand still: where a
// stream is at something and waits for nothing, there it happened.
func (machine *machine) losses(first *LostError, lanes []*lane) error {
	all := &LostError{Err: first.Err}
	if told := (*driver.Error)(nil); errors.As(first.Err, &told) {
		all.Err = told // without the instruction whose call was the next one
	}
	ended := machine.ended(lanes)
	var text strings.Builder
	for _, gpu := range machine.unanswered() {
		into := &all.With
		for _, lane := range lanes {
			if lane.device.gpu != gpu {
				continue
			}
			lane.stand(&text, ended)
			if lane.isAt(ended) {
				into = &all.GPUs
			}
		}
		*into = append(*into, gpu.place())
	}
	if len(all.GPUs) == 0 { // nobody knows
		all.GPUs, all.With = all.With, nil
	}
	if len(all.GPUs) == 0 {
		all.GPUs = first.GPUs
	}
	all.Stand = strings.TrimSuffix(text.String(), "\n")
	return all
}

// unanswered are the GPUs whose contexts are no more.
func (machine *machine) unanswered() (lost []*gpu) {
	for _, gpu := range machine.gpus {
		device := machine.on(gpu)[0]
		if told := (*LostError)(nil); device.context != nil && errors.As(device.do(answers), &told) {
			lost = append(lost, gpu)
		}
	}
	return lost
}

// isAt reports a stream that was given a line which waits for nothing, and has not ended
// it.
func (lane *lane) isAt(ended []bool) bool {
	if lane.ended == len(lane.lines) || lane.ended >= lane.next {
		return false
	}
	return !slices.ContainsFunc(lane.awaited(lane.lines[lane.ended]), func(wait int32) bool { return !ended[wait] })
}

// answers asks the bound context for something that it makes without waiting.
func answers() error {
	event, err := driver.NewEvent(false)
	if err != nil {
		return err
	}
	return event.Destroy()
}

package executor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// steps runs the program as often as the settings ask.
func (run *running) steps(ctx context.Context) error {
	if run.job.Workload.Mode == costmodel.Load {
		return nil
	}
	speech, before := run.generation(), run.done
	for count := range run.settings.Steps {
		step := &Step{Number: before + count + 1, Optimizer: run.settings.Optimizer}
		if count == 0 {
			step.Taps = run.taps
		}
		if err := run.feed(step.Number); err != nil {
			return err
		}
		if speech != nil {
			speech.begin(step)
		}
		times, err := run.machine.Step(ctx, step)
		if err != nil {
			return err
		}
		if speech != nil {
			speech.end()
		}
		if err := run.stepped(step, times); err != nil {
			return err
		}
	}
	run.rate(speech)
	return nil
}

// feed writes the ids of a step's batch into all feeds of the program. Labels are the same ids: the
// loss reads the next one.
func (run *running) feed(step int64) error {
	ids := run.settings.batch(run.job, step)
	data := make([]byte, 4*len(ids))
	for i, id := range ids {
		binary.LittleEndian.PutUint32(data[4*i:], uint32(id))
	}
	for _, feed := range run.bound.Feeds() {
		if size := 4 * feed.Rows * feed.Columns; size != int64(len(data)) {
			return fmt.Errorf("the feed %q takes %d ids, and a batch has %d", feed.Name, size/4, len(ids))
		}
		var err error
		switch feed.Name {
		case "ids", "labels":
			err = run.machine.Write(feed.Device, feed.Offset, data)
		case "types": // one sentence each
			err = run.machine.Fill(feed.Device, feed.Offset, int64(len(data)), 0)
		default:
			err = fmt.Errorf("there is nothing to feed %q with", feed.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stepped records a step that is done.
func (run *running) stepped(step *Step, times *Times) error {
	result := StepResult{Number: step.Number, Times: *times}
	if run.job.Workload.Mode == costmodel.Train {
		var err error
		if result.Loss, err = run.loss(); err != nil {
			return err
		}
	}
	run.result.Steps = append(run.result.Steps, result)
	run.done = result.Number
	if onStep := run.settings.Watch.Step; onStep != nil {
		onStep(&result)
	}
	return nil
}

// loss returns the mean over the micro-batches.
func (run *running) loss() (float64, error) {
	var sum float64
	var count int
	for i := range run.passes {
		place, known := run.given(&run.passes[i], "losses")
		if !known {
			continue
		}
		var data [4]byte
		if err := run.machine.Read(run.passes[i].device, place.Offset, data[:]); err != nil {
			return 0, err
		}
		sum += float64(math.Float32frombits(binary.LittleEndian.Uint32(data[:])))
		count++
	}
	if count == 0 {
		return 0, errors.New("the program makes no losses")
	}
	return sum / float64(count), nil
}

// rate computes the speed. The first step does not count if there are others: its caches are cold.
func (run *running) rate(speech *generation) {
	var seconds []float64
	for i := range run.result.Steps {
		seconds = append(seconds, run.result.Steps[i].Times.Step.Seconds())
	}
	if run.result.StepSeconds = warmMedian(seconds); run.result.StepSeconds <= 0 {
		return
	}
	if speech != nil {
		run.result.TokensPerSecond, run.result.FirstTokenSeconds = speech.rate(), warmMedian(speech.firsts)
		return
	}
	run.result.TokensPerSecond = float64(run.job.Workload.Batch*run.job.Workload.Seq) / run.result.StepSeconds
}

// warmMedian is the median of what steps took, without the first if there are others.
func warmMedian(values []float64) float64 {
	if len(values) > 1 {
		values = values[1:]
	}
	return median(values)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// values reads a part of an area's row as fp32.
func (run *running) values(device int, area *bind.Area, row, column int64, into []float32, raw []byte) error {
	size := area.DType.Bits() / 8
	raw = raw[:int64(len(into))*size]
	if err := run.machine.Read(device, area.Offset+(row*area.Stride+column)*size, raw); err != nil {
		return err
	}
	for i := range into {
		if size == 2 {
			into[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		} else {
			into[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}
	return nil
}

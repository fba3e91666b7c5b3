package watch

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/nvml"
)

// nvmlOften is how often NVML is read. The whole of watching then takes 0.75 % of a core (one H200,
// driver 580).
const nvmlOften = 50 * time.Millisecond

// nvmlReader reads by NVML.
type nvmlReader struct {
	library  *nvml.Library
	handles  []nvml.GPU
	gpus     []GPU
	source   Source
	follower *nvml.Follower // nil: none yet
}

func openNVML() (*nvmlReader, error) {
	library, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	reader := &nvmlReader{library: library}
	if err := reader.find(); err != nil {
		return nil, errors.Join(fmt.Errorf("NVML: %w", err), library.Close())
	}
	return reader, nil
}

// find reads what does not change.
func (reader *nvmlReader) find() error {
	version, err := reader.library.Driver()
	if err != nil {
		return err
	}
	reader.source = Source{Name: "NVML, driver " + version, IntervalSeconds: nvmlOften.Seconds(), GranuleBytes: 1, Note: reader.library.Lacks()}
	if reader.handles, err = reader.library.GPUs(); err != nil {
		return err
	}
	for i := range reader.handles {
		handle := &reader.handles[i]
		memory, err := handle.Memory()
		if err != nil {
			return err
		}
		cut, err := handle.Cut()
		if err != nil {
			return err
		}
		reader.gpus = append(reader.gpus, GPU{UUID: handle.UUID, Name: handle.Name, Total: memory.Total, Cut: cut})
	}
	return nil
}

func (reader *nvmlReader) Source() Source { return reader.source }
func (reader *nvmlReader) GPUs() []GPU    { return reader.gpus }

func (reader *nvmlReader) Used(into []int64) error {
	for i := range reader.handles {
		memory, err := reader.handles[i].Memory()
		if err != nil {
			return err
		}
		into[i] = memory.Used
	}
	return nil
}

func (reader *nvmlReader) Follow(gpus []int) (err error) {
	handles := make([]nvml.GPU, len(gpus))
	for i, gpu := range gpus {
		handles[i] = reader.handles[gpu]
	}
	reader.follower, err = reader.library.Follow(handles, nvmlOften)
	return err
}

func (reader *nvmlReader) Take(each func(when time.Duration, used []int64)) error {
	return reader.follower.Take(each)
}

func (reader *nvmlReader) Close() error {
	if reader.follower != nil {
		reader.follower.End()
	}
	return reader.library.Close()
}

func (reader *nvmlReader) Processes(gpu int) ([]nvml.Process, error) {
	return reader.handles[gpu].Processes()
}

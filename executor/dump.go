package executor

import (
	"encoding/binary"
	"math"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// dumper writes tensors of a turn's first step to files.
type dumper struct{ *running }

// begin creates the files of the requested tensors, and adds taps at the moments when their values
// are there. A tap reads them on their device, a row or a stretch at a time, and writes them to
// their place in the file.
func (run dumper) begin() error {
	run.taps = make(map[Tap]func() error)
	asked := &run.settings.Dump
	for _, kind := range []struct {
		file  string
		begin func(file string) error
	}{{asked.Logits, run.dumpLogits}, {asked.Hidden, run.dumpHidden}, {asked.Grads, run.dumpGrads}} {
		if kind.file == "" {
			continue
		}
		if err := kind.begin(kind.file); err != nil {
			return err
		}
	}
	return nil
}

// tap adds a call at a moment, after the calls that are already there.
func (run dumper) tap(at Tap, then func() error) {
	if before := run.taps[at]; before != nil {
		run.taps[at] = func() error {
			if err := before(); err != nil {
				return err
			}
			return then()
		}
		return
	}
	run.taps[at] = then
}

// matrix is one tensor of a dumped file, rows × columns values.
type matrix struct {
	dumper
	file    *weights.File
	name    string
	columns int64
}

// tensor begins a file of one tensor [batch, seq, columns].
func (run dumper) tensor(path, name string, seq, columns int64) (*matrix, error) {
	entry := weights.Entry{Name: name, DType: modelgraph.F32, Shape: []int64{run.job.Workload.Batch, seq, columns}}
	file, err := run.create(weights.Create(path, nil, []weights.Entry{entry}))
	return &matrix{run, file, name, columns}, err
}

// copy writes columns [0, count) of an area into the tensor, from a row and a column on. change, if
// not nil, converts each value.
func (matrix *matrix) copy(device int, area *bind.Area, row, column, count int64, change func(float32) float32) error {
	values, raw := make([]float32, count), make([]byte, 4*count)
	for from := range area.Rows {
		if err := matrix.values(device, area, from, 0, values, raw); err != nil {
			return err
		}
		for i, value := range values {
			if change != nil {
				value = change(value)
			}
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(value))
		}
		if err := matrix.file.WriteAt(matrix.name, 4*((row+from)*matrix.columns+column), raw); err != nil {
			return err
		}
	}
	return nil
}

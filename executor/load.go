package executor

import (
	"cmp"
	"context"
	"slices"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// load fills every buffer that a load or a zero names: with the values of its parameters, and with
// zeros elsewhere. It returns how many bytes these are.
func (run *running) load(ctx context.Context) (bytes int64, err error) {
	loader := &loader{running: run, params: make(map[int32][]bind.Param)}
	for _, param := range run.bound.Params() {
		loader.params[param.Buffer] = append(loader.params[param.Buffer], param)
	}
	prog := run.job.Program
	var buffers []int32
	for index := range prog.Instrs {
		instr := &prog.Instrs[index]
		if instr.Op != program.Load && instr.Op != program.Zero {
			continue
		}
		for _, access := range prog.Accesses[instr.FirstAccess:instr.EndAccess] {
			buffers = append(buffers, access.Buffer)
			loader.all += prog.Buffers[access.Buffer].Bytes
		}
	}
	for _, buffer := range buffers {
		if err := loader.buffer(ctx, buffer); err != nil {
			return 0, err
		}
	}
	if err := loader.upload(ctx); err != nil {
		return 0, err
	}
	return loader.all, run.closeSource() // a file that changed meanwhile is found here
}

// loader loads a program's buffers.
type loader struct {
	*running
	params    map[int32][]bind.Param // by buffer
	uploads   []Upload               // values that are read together
	done, all int64                  // bytes
}

// buffer fills a buffer, from its beginning to its end.
func (loader *loader) buffer(ctx context.Context, index int32) error {
	buffer := &loader.job.Program.Buffers[index]
	params := loader.params[index]
	slices.SortFunc(params, func(one, other bind.Param) int { return cmp.Compare(one.Offset, other.Offset) })
	at := buffer.Offset
	for i := range params {
		param := &params[i]
		if err := loader.clear(ctx, int(buffer.Device), at, param.Offset); err != nil {
			return err
		}
		at = param.Offset + bytesOf(param)
		if err := loader.param(ctx, param); err != nil {
			return err
		}
	}
	return loader.clear(ctx, int(buffer.Device), at, buffer.Offset+buffer.Bytes)
}

func bytesOf(param *bind.Param) int64 { return param.Rows * param.Columns * param.DType.Bits() / 8 }

// clear fills [from, to) with zeros.
func (loader *loader) clear(ctx context.Context, device int, from, to int64) error {
	if from == to {
		return ctx.Err()
	}
	if err := loader.machine.Fill(device, from, to-from, 0); err != nil {
		return err
	}
	loader.moved(to - from)
	return ctx.Err()
}

func (loader *loader) moved(bytes int64) {
	loader.done += bytes
	if onLoaded := loader.settings.Watch.Loaded; onLoaded != nil {
		onLoaded(loader.done, loader.all)
	}
}

// param fills the place of one tensor of a parameter. Without an earlier run's state, a master
// begins as its weight, and a moment with zeros.
func (loader *loader) param(ctx context.Context, param *bind.Param) error {
	name, resumed := param.Name, loader.settings.Resume != ""
	if resumed {
		name += suffixes[param.Kind]
	} else if param.Kind != bind.Weight && param.Kind != bind.Master {
		return loader.clear(ctx, param.Device, param.Offset, param.Offset+bytesOf(param))
	}
	if planned, err := loader.planUpload(name, param); planned || err != nil {
		return err
	}
	at, end := param.Offset, param.Offset+bytesOf(param)
	err := loader.source.Stream(ctx, name, param.DType, func(chunk []byte) error {
		size := int64(len(chunk))
		if at+size > end {
			return more(name, param)
		}
		if err := loader.machine.Write(param.Device, at, chunk); err != nil {
			return err
		}
		at += size
		loader.moved(size)
		return nil
	})
	if err == nil && at != end {
		err = fewer(name, param)
	}
	return err
}

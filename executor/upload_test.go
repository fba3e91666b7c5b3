package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// uploadMachine is the CPU's machine as an [executor.Uploader]. Bound is the type of a
// bound program, which this package cannot name.
type uploadMachine[Bound any] struct {
	executor.Machine
	open func(context.Context, Bound) (executor.Machine, error)
	then func() error // called when all is uploaded; nil: nothing
}

func newUploadMachine[Bound any](open func(context.Context, Bound) (executor.Machine, error)) *uploadMachine[Bound] {
	return &uploadMachine[Bound]{open: open}
}

func (*uploadMachine[Bound]) Name() string { return "cpu" }

func (of *uploadMachine[Bound]) Open(ctx context.Context, bound Bound) (executor.Machine, error) {
	machine, err := of.open(ctx, bound)
	return &uploadMachine[Bound]{machine, of.open, of.then}, err
}

// Upload reads all values at once, each in halves.
func (of *uploadMachine[Bound]) Upload(_ context.Context, uploads []executor.Upload, onProgress func(int64)) error {
	var readers sync.WaitGroup
	errs, values := make([]error, len(uploads)), make([][]byte, len(uploads))
	for i := range uploads {
		readers.Go(func() {
			from := &uploads[i].Values
			values[i] = make([]byte, from.Bytes)
			half := from.Bytes / 8 * 4
			if errs[i] = from.Read(values[i][half:], half); errs[i] == nil {
				errs[i] = from.Read(values[i][:half], 0)
			}
		})
	}
	readers.Wait()
	for i := range uploads {
		if errs[i] != nil {
			return errs[i]
		}
		if err := of.Write(uploads[i].Device, uploads[i].Offset, values[i]); err != nil {
			return err
		}
		onProgress(uploads[i].Values.Bytes)
	}
	if of.then == nil {
		return nil
	}
	return of.then()
}

// TestUpload: a machine that reads values itself gives the results of one that is given
// them: random and resumed, with copies on other devices and tied weights.
func TestUpload(t *testing.T) {
	for _, family := range []string{"llama-tied", "gpt2"} {
		var want, got executor.Result
		folder := t.TempDir()
		for i, result := range []*executor.Result{&want, &got} {
			backend := cpu.New()
			if i == 1 {
				backend = newUploadMachine(backend.Open)
			}
			var last, of int64
			settings := executor.Settings{Steps: 2, Optimizer: adamW, Weights: weights.Random(jobOf(t, family, training, 2).Graph, 11)}
			settings.Save.State = filepath.Join(folder, fmt.Sprint("state", i))
			for range 2 {
				settings.Watch.Loaded = func(bytes, all int64) { last, of = bytes, all }
				made, err := executor.Run(context.Background(), backend, jobOf(t, family, training, 2), &settings)
				if err != nil {
					t.Fatal(err)
				}
				if last != of || of == 0 {
					t.Errorf("%s: %d of %d bytes were loaded", family, last, of)
				}
				*result = *made
				settings.Weights, settings.Resume, settings.Save.State = nil, settings.Save.State, filepath.Join(folder, fmt.Sprint("again", i))
			}
		}
		if got.Loading == nil || got.Loading.Bytes < 3*got.Devices[0].Regions[0].PlannedBytes/4 || got.Loading.Seconds <= 0 || want.Loading != nil {
			t.Errorf("%s: %+v, and without a pourer %+v", family, got.Loading, want.Loading)
		}
		for i := range want.Steps {
			if want.Steps[i].Loss != got.Steps[i].Loss {
				t.Errorf("%s: step %d has loss %v, want %v", family, i, got.Steps[i].Loss, want.Steps[i].Loss)
			}
		}
		if !reflect.DeepEqual(want.Devices, got.Devices) {
			t.Errorf("%s: %+v, want %+v", family, got.Devices, want.Devices)
		}
		for _, name := range []string{"state.json", "state.safetensors"} {
			same(t, filepath.Join(folder, "again0", name), filepath.Join(folder, "again1", name))
		}
	}
}

// stretched is a source whose ranges are of another size than parameters.
type stretched struct {
	weights.Ranged
	by int64
}

func (of stretched) Ranges(name string, dtype modelgraph.DType) ([]weights.Range, error) {
	ranges, err := of.Ranged.Ranges(name, dtype)
	if err == nil {
		ranges[0].Bytes += of.by
	}
	return ranges, err
}

// TestUploadTooMuch: values that are more or fewer than the model's are refused by
// name before anything is read.
func TestUploadTooMuch(t *testing.T) {
	job := jobOf(t, "llama", training, 1)
	for by, want := range map[int64]string{4: `.weight": more than the `, -4: `.weight": fewer than the `} {
		source, is := weights.Random(job.Graph, 1).(weights.Ranged)
		if !is {
			t.Fatal("drawn values have no ranges")
		}
		_, err := executor.Run(context.Background(), newUploadMachine(cpu.New().Open), job, &executor.Settings{Steps: 1, Optimizer: adamW, Weights: stretched{source, by}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", by, err)
		}
	}
}

// TestUploadFromAFileThatChanges: what was read of a file that was written to
// meanwhile is not passed off as weights.
func TestUploadFromAFileThatChanges(t *testing.T) {
	job, folder := jobOf(t, "llama", training, 1), filepath.Join(t.TempDir(), "state")
	settings := executor.Settings{Steps: 1, Optimizer: adamW}
	settings.Save.State = folder
	run(t, job, settings)
	settings.Save.State, settings.Resume = "", folder
	backend, path := newUploadMachine(cpu.New().Open), filepath.Join(folder, "state.safetensors")
	backend.then = func() error {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = file.WriteAt([]byte{1}, 10_000)
		return errors.Join(err, file.Close())
	}
	var changed *weights.ChangedError
	if _, err := executor.Run(context.Background(), backend, job, &settings); !errors.As(err, &changed) || changed.File != path {
		t.Error(err)
	}
}

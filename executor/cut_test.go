package executor_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
)

// TestEveryCut: of every family the files that a run leaves are the same byte
// for byte, on one device or several, whatever the schedule.
func TestEveryCut(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	for family := range backendtest.Families {
		for _, mode := range []costmodel.Mode{costmodel.Train, costmodel.Infer} {
			if backendtest.Forwards(family) && mode == costmodel.Train {
				continue
			}
			t.Run(fmt.Sprint(family, " ", mode), func(t *testing.T) {
				work := training
				work.Mode, work.Batch, work.MicroBatches = mode, 3, 3
				if mode == costmodel.Infer {
					work.Optimizer = ""
				} else {
					work.Precision = costmodel.BF16Mixed
				}
				folder := t.TempDir()
				for number, cut := range []struct {
					schedule  costmodel.ScheduleKind
					recompute string
					devices   int
					runs      int
				}{{"", "", 1, 1}, {costmodel.GPipe, "", 2, 1}, {costmodel.OneFOneB, costmodel.RecomputeFull, 4, 1}, {costmodel.Interleaved, "", 2, 2}} {
					work := work
					if work.Schedule = cut.schedule; mode == costmodel.Train {
						work.Recompute = cut.recompute
					}
					if cut.schedule == costmodel.Interleaved {
						work.VirtualStages = int64(cut.runs)
					}
					jobOf(t, family, work, 1) // reads the model
					job, err := backendtest.Job(graphs[family], work, cut.devices, backendtest.Runs(cut.devices, cut.runs, random))
					if err != nil {
						t.Fatal(err)
					}
					begin := filepath.Join(folder, fmt.Sprint(number))
					for _, name := range leave(t, job, begin) {
						same(t, filepath.Join(folder, "0"+name), begin+name)
					}
				}
			})
		}
	}
}

// leave runs two steps with all that a run can leave, in files that begin so.
func leave(t *testing.T, job *executor.Job, begin string) (files []string) {
	t.Helper()
	settings := executor.Settings{Steps: 2}
	settings.Dump.Hidden, files = begin+"hidden", []string{"hidden"}
	if job.Graph.Class != "BertModel" {
		settings.Dump.Logits, files = begin+"logits", append(files, "logits")
	}
	if job.Workload.Mode == costmodel.Train {
		settings.Optimizer = adamW
		settings.Optimizer.Clip = 0.5
		settings.Dump.Grads, settings.Save.State = begin+"grads", begin+"state"
		files = append(files, "grads", "state/state.safetensors", "state/state.json")
	}
	run(t, job, settings)
	return files
}

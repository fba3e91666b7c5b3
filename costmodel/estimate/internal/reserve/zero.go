package reserve

import (
	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// ZeRO is a rank of DeepSpeed's, in numbers.
type ZeRO struct {
	Settings zero.Settings
	Ranks    int64
	// Bytes of an element of new gradients, of summed ones, and of the masters and each of States.
	Grad, Summed, Master int64
	States               int64 // tensors that the optimizer has of each master
	MicroBatches, Steps  int
	// Of stage 3: the hooks of a step, and what each is one of.
	Trace  *zero.Trace
	Called func(layer int, module string, ends, backward bool, from int) (int, bool)
}

// Simulate runs the first steps of a rank.
func (rank *ZeRO) Simulate(decoder *Decoder) [][2]int64 { return pairs(rank.run(decoder)) }

func (rank *ZeRO) run(decoder *Decoder) []int64 {
	process := newProcess(decoder, rank.Ranks)
	var stage interface {
		start()
		replay.Hooks
		micro(step int, body func())
		boundary()
		step(first bool)
	}
	if rank.Settings.Stage == 3 {
		stage = &whole3{ZeRO: rank, Process: &process}
	} else {
		stage = &parts{ZeRO: rank, Process: &process}
	}
	decoder.NewSums = rank.Settings.Stage < 3 // whose hooks hold one of the two
	stage.start()
	process.Cache.ResetPeaks()
	for step := range rank.Steps {
		for micro := range rank.MicroBatches {
			stage.micro(step, func() { process.pass(stage) })
			if micro == rank.MicroBatches-1 {
				stage.boundary()
				stage.step(step == 0)
			}
			process.mark()
		}
	}
	return process.marks
}

// states are the optimizer's of one flat partition.
func (rank *ZeRO) states(run *replay.Run, part int64) {
	for range rank.States {
		run.New(part * rank.Master)
	}
}

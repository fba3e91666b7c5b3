package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// Rank is what one rank of a pipeline runs: its chunks, in the order of the chain.
type Rank struct {
	Schedule costmodel.Schedule
	Index    int64 // of the rank
	Chunks   []costmodel.Interval
}

// RankStep is a rank's step: its arena's if the engine has one ([costmodel.StageRules]).
func RankStep(table *costmodel.Table, place Rank, dev *costmodel.Device) Step {
	if costmodel.StageRulesOf(table.Workload.Runtime).Arena {
		return Step{parts: []producer{arenaEvents(table, place, dev)}}
	}
	if alone(table) {
		return Step{parts: []producer{oneStage(table, dev)}}
	}
	step := Step{parts: []producer{pipelineEvents(table, place, dev)}}
	const most = 1 << 14 // micro-batches of chunks that a trace lists; of more, equal ones are left out
	if place.Schedule.MicroBatches <= most/max(1, int64(len(place.Chunks))) {
		step.whole = func(emit func(stepEvent)) {
			every := rankOf(table, place, dev)
			every.phases = []order.Phase{{Actions: order.Of(place.Schedule, place.Index), Times: 1}}
			every.events(emit)
		}
	}
	return step
}

// Ranks computes any rank's peak without its units, for searches. Not safe for concurrent use.
type Ranks interface {
	// Peak is [RankStep] on a device that has this workspace if it runs products.
	Peak(place Rank, workspace int64) int64
	// Floor is at most Peak of the same rank, and of every one that holds these units and more.
	// Empty chunks may be filled; if grows, units may be added on both sides of every chunk.
	Floor(place Rank, workspace int64, grows bool) int64
}

// NewRanks prepares the units of a table.
func NewRanks(table *costmodel.Table) Ranks {
	if costmodel.StageRulesOf(table.Workload.Runtime).Arena {
		return newArenaChain(table)
	}
	if alone(table) {
		return &wholeModel{table: table}
	}
	return newStageChain(table)
}

// alone reports a stage of torchtitan's that is the whole model, which is FSDP2 without
// a pipeline (trainer.py, forward_backward_step).
func alone(table *costmodel.Table) bool {
	return table.Workload.Runtime == value.Torchtitan && table.Workload.PP.Count() == 1
}

// oneStage is the step of such a stage.
func oneStage(table *costmodel.Table, dev *costmodel.Device) producer {
	all := make(unitList, len(table.Units))
	for i := range all {
		all[i] = &table.Units[i]
	}
	return sharded(table, all, ResidentOn(table, table.InputDevice, dev, false))
}

// wholeModel computes the peak of the only rank, many times on one kind of device.
type wholeModel struct {
	table           *costmodel.Table
	peak, workspace int64 // of the last answer; a peak of 0 is none
}

func (of *wholeModel) Peak(_ Rank, workspace int64) int64 {
	if of.peak == 0 || of.workspace != workspace {
		of.peak, of.workspace = walk(oneStage(of.table, &costmodel.Device{WorkspaceBytes: workspace})).Memory.Total(), workspace
	}
	return of.peak
}

// Floor returns 0: no bound is known for a part.
func (*wholeModel) Floor(Rank, int64, bool) int64 { return 0 }

// pipelineEvents is the engine of one rank of a pipeline: a step, action by action (the first and
// last of equal ones, see [order.Phase.Ends]). Its runtime's rules select from torch 2.11's
// distributed/pipelining (stage.py, schedules.py):
//   - PipelineStage._prepare_forward_infra and _create_grad_recv_info allocate receive buffers for
//     all micro-batches once; they stay ([costmodel.StageRules].Slots).
//   - fwd_cache keeps a micro-batch's output until its backward has ended (backward_one_chunk holds
//     it in stage_output; KeepsOutputs).
//   - The last stage keeps every micro-batch's output in output_chunks to the next step, and
//     _merge_outputs concatenates them when all are done (MergesOutputs).
//   - Schedule1F1B._step_microbatches holds the input's gradient in bwd_sends until the next
//     backward has made its own (HoldsGradient).
//   - The first backward of a stage makes its gradients, later ones add to them.
//   - Parameters that a stage's replicas shard are gathered in its first forward and released after
//     the last backward ([stageShards]).
//
// It skips chunks without units.
func pipelineEvents(table *costmodel.Table, place Rank, dev *costmodel.Device) producer {
	return rankOf(table, place, dev).events
}

func rankOf(table *costmodel.Table, on Rank, dev *costmodel.Device) *rank {
	place := &rank{
		mode: table.Workload.Mode, rules: costmodel.StageRulesOf(table.Workload.Runtime), schedule: on.Schedule, phases: order.Phases(on.Schedule, on.Index),
		workspace: table.Workspaces * dev.WorkspaceBytes, chunks: make([]chunk, len(on.Chunks)),
	}
	ends := false // a chunk of the rank ends the model
	shards := newStageShards(table)
	for i, at := range on.Chunks {
		if at.First < at.End {
			place.chunks[i] = chunkOf(table, at)
			if units, ok := place.chunks[i].first.(unitList); ok && shards != nil {
				place.chunks[i].shared = shardedList{units, shards, at.First}
			}
			ends = ends || place.chunks[i].ends
		}
	}
	for i := range place.chunks {
		if ends { // padding is only for ranks without the loss
			place.chunks[i].padding = 0
		}
	}
	return place
}

// chunk is one stage of the pipeline on a rank. The stage before sends its input to a buffer, and
// the stage after its output's gradient.
type chunk struct {
	first, again stretch // with no gradients yet, and with all of them; nil if it has no unit
	shared       sharing // nil if no replicas share it
	ends         bool    // it ends the model
	in, out      int64   // bytes of a micro-batch's message in, and of its gradient back
	// own is a micro-batch's output, kept to the end of its backward (stage.py fwd_cache); logits
	// is the last stage's, which stays.
	own, logits int64
	rotary      int64 // cosines and sines of a micro-batch
	padding     int64 // of gradients and states
}

// messages fills in what depends only on the chunk's first and last unit.
func (piece *chunk) messages(table *costmodel.Table, at costmodel.Interval) {
	piece.rotary = table.Rotary
	if at.First > 0 {
		piece.in = table.Units[at.First-1].Output
	}
	output := table.Units[at.End-1].Output
	rules := costmodel.StageRulesOf(table.Workload.Runtime)
	piece.ends = at.End == len(table.Units)
	if rules.Passing {
		piece.in = 0
		return
	}
	if !piece.ends {
		piece.out = output
	}
	switch {
	case piece.ends && rules.MergesOutputs:
		piece.logits = output
	case rules.KeepsOutputs:
		piece.own = output
	}
}

func chunkOf(table *costmodel.Table, at costmodel.Interval) chunk {
	var piece chunk
	piece.messages(table, at)
	var first, again unitList
	for unitIndex := at.First; unitIndex < at.End; unitIndex++ {
		unit := staged(table, unitIndex, unitIndex == at.First && unitIndex > 0, unitIndex == at.End-1 && !piece.ends)
		more := accumulating(&unit)
		first, again = append(first, &unit), append(again, &more)
		piece.padding += unit.StatePadding
	}
	piece.first, piece.again = first, again
	return piece
}

// rank is a rank of a pipeline as its events need it.
type rank struct {
	mode      costmodel.Mode
	rules     costmodel.StageRules
	schedule  costmodel.Schedule
	phases    []order.Phase
	chunks    []chunk
	workspace int64
}

func (place *rank) events(emit func(stepEvent)) {
	place.start(emit)
	if place.mode == costmodel.Load || place.empty() {
		return
	}
	place.buffers(emit)
	step := rankStep{rank: place, repeating: repeating{emit: emit}, ran: make([]bool, len(place.chunks)), began: make([]bool, len(place.chunks))}
	step.emit = func(event stepEvent) {
		event.Action = step.action
		step.tell(event)
	}
	for i := range place.phases {
		step.run(&place.phases[i], step.act)
	}
	step.end()
}

// empty reports a rank without a unit.
func (place *rank) empty() bool {
	for i := range place.chunks {
		if place.chunks[i].first != nil {
			return false
		}
	}
	return true
}

// start is the memory alive throughout.
func (place *rank) start(emit func(stepEvent)) {
	products := false
	for i := range place.chunks {
		if piece := &place.chunks[i]; piece.first != nil {
			piece.first.static(emit)
			products = products || piece.first.totals().products
		}
	}
	var there costmodel.Memory
	if products && place.mode != costmodel.Load {
		there.Workspace = place.workspace
	}
	emit(stepEvent{Change: there, What: "weights", Owner: ofDevice})
}

// buffers are the buffers of all incoming messages.
func (place *rank) buffers(emit func(stepEvent)) {
	var there costmodel.Memory
	slots := slotsOf(place.rules, place.schedule.MicroBatches)
	for i := range place.chunks {
		piece := &place.chunks[i]
		there.Workspace += piece.padding
		there.CommBuffers += slots * piece.in
		if place.mode == costmodel.Train {
			there.CommBuffers += slots * piece.out
		}
	}
	emit(stepEvent{Change: there, What: "receive buffers", Owner: ofReceive})
}

// rankStep is a rank within a step.
type rankStep struct {
	*rank
	repeating
	emit   func(stepEvent) // tell, made once
	action *order.Action   // the pass, until the end
	sent   int64           // an input's gradient that is held
	ran    []bool          // by chunk: its parameters have gradients
	// began, by chunk: a micro-batch has run forward.
	began []bool
}

func (step *rankStep) act(action order.Action) {
	piece := &step.chunks[action.Chunk]
	step.action = &action
	switch {
	case piece.first == nil:
	case action.Kind == order.Backward && step.mode == costmodel.Train:
		step.backward(piece, int(action.Chunk))
	case action.Kind == order.Backward:
	case step.mode == costmodel.Train:
		step.forward(piece, int(action.Chunk))
	default:
		step.infer(piece)
	}
}

func (step *rankStep) forward(piece *chunk, number int) {
	step.emit(stepEvent{Change: activations(piece.rotary), Owner: ofRotary})
	if piece.shared != nil && !step.began[number] {
		piece.shared.gather(step.emit)
	} else {
		piece.first.forward(step.emit)
	}
	step.began[number] = true
	piece.first.bodyEnd(step.emit) // autocast's region is the module's forward
	step.emit(stepEvent{Change: activations(piece.own + piece.logits), What: "end of forward", Owner: ofStage})
}

// infer is one forward that no backward follows: stages keep their outputs.
func (step *rankStep) infer(piece *chunk) {
	step.emit(stepEvent{Change: activations(piece.rotary), Owner: ofRotary})
	piece.first.infer(step.emit)
	step.emit(stepEvent{Change: activations(-piece.rotary), Owner: ofRotary})
	step.emit(stepEvent{Change: activations(piece.own + piece.logits), What: "end of forward", Owner: ofStage})
}

func (step *rankStep) backward(piece *chunk, number int) {
	if step.ran[number] {
		piece.again.backward(step.emit)
	} else {
		piece.first.backward(step.emit)
	}
	step.ran[number] = true
	step.emit(stepEvent{Change: activations(-piece.rotary), Owner: ofRotary})
	step.emit(stepEvent{Change: activations(-piece.own), Owner: ofStage})
	if step.rules.KeepsGradient && step.schedule.Kind == costmodel.OneFOneB {
		step.emit(stepEvent{Change: activations(piece.in - step.sent), Owner: ofSent})
		step.sent = piece.in
	}
}

// end concatenates the last stage's outputs, then runs the optimizer.
func (step *rankStep) end() {
	step.action = nil
	step.emit(stepEvent{Change: activations(-step.sent), Owner: ofSent}) // a variable of _step_microbatches
	var update int64
	for i := range step.chunks {
		piece := &step.chunks[i]
		if piece.shared != nil && step.ran[i] {
			piece.shared.reduce(step.emit)
		}
		if piece.ends {
			step.emit(stepEvent{Over: activations(step.schedule.MicroBatches * piece.logits), What: "merging of outputs"})
		}
		if piece.first != nil {
			update += piece.first.totals().step
		}
	}
	if step.mode == costmodel.Train {
		step.emit(stepEvent{Over: activations(update), What: "optimizer step"})
	}
}

// slotsOf is how many messages a channel holds of so many micro-batches.
func slotsOf(rules costmodel.StageRules, microBatches int64) int64 {
	if rules.Slots == 0 {
		return microBatches
	}
	return min(rules.Slots, microBatches)
}

package costmodel

import "github.com/devmap-dev/devmap/costmodel/internal/value"

// StageRules are a runtime's rules for a pipeline's stage: what it keeps in addition to its units,
// and which schedules run.
type StageRules struct {
	// Arena: every byte is planned before the run ([Unit.Regions]).
	Arena bool
	// Slots is the number of messages that a channel holds; 0: one for each micro-batch.
	Slots int64
	// KeepsOutputs: a micro-batch's output stays to the end of its backward.
	KeepsOutputs bool
	// MergesOutputs: the last stage keeps all outputs, and joins them.
	MergesOutputs bool
	// KeepsGradient: the gradient sent last stays until the next is made (1F1B).
	KeepsGradient bool
	// AnyMicroBatches: any number of micro-batches runs. Interleaved rounds have at most as many as
	// there are stages; the last may be shorter.
	AnyMicroBatches bool
	// WholeRounds: interleaved rounds are of as many micro-batches as stages, the last one, too.
	WholeRounds bool
	// Alone: a unit without parameters is a stage like any other.
	Alone bool
	// Passing: a stage keeps its input only for its first layer, and its output only until sent.
	Passing bool
	// WholeEnds: all layers before a decoder's blocks are on one stage, and all after them, too.
	WholeEnds bool
}

// StageRulesOf returns a runtime's rules: those of torch.distributed.pipelining except for [Devmap]
// and Megatron-Core. Megatron frees an output once it is sent (core/pipeline_parallel/schedules.py,
// deallocate_output_tensor). Its layout has E for the embedding and L for norm and head
// (core/transformer/pipeline_parallel_layer_layout.py).
func StageRulesOf(runtime string) StageRules {
	if runtime == value.Megatron { // num_warmup_microbatches; final_microbatch_group_size
		return StageRules{WholeEnds: true, Passing: true, AnyMicroBatches: true, WholeRounds: true}
	}
	if runtime == Devmap {
		return StageRules{Arena: true, Slots: 2, AnyMicroBatches: true, Alone: true}
	}
	// torchtitan asks for no outputs (trainer.py, pp_forward_backward_step: return_outputs),
	// and emit names norm and head together.
	titan := runtime == value.Torchtitan
	return StageRules{KeepsOutputs: true, MergesOutputs: !titan, KeepsGradient: true, WholeEnds: titan}
}

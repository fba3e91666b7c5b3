package executor_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// TestGenerated: every token is the likeliest behind the prompt and the tokens
// before it, as a forward over all of them says, wherever the model is cut.
func TestGenerated(t *testing.T) {
	const count = 4
	for _, family := range []string{"llama", "mistral", "gpt2", "gemma3_text"} {
		work := inference
		work.NewTokens = count
		one := run(t, jobOf(t, family, work, 1), executor.Settings{Steps: 1, Seed: 2})
		two := run(t, jobOf(t, family, work, 2), executor.Settings{Steps: 1, Seed: 2})
		if !slices.EqualFunc(one.Tokens, two.Tokens, slices.Equal) {
			t.Errorf("%s: one device says %d, two %d", family, one.Tokens, two.Tokens)
		}
		if one.FirstTokenSeconds <= 0 || one.FirstTokenSeconds >= one.StepSeconds {
			t.Errorf("%s: the first token took %v s of a step of %v s", family, one.FirstTokenSeconds, one.StepSeconds)
		}
		work.Strategy = costmodel.DeviceMap
		mapped := run(t, jobOf(t, family, work, 2), executor.Settings{Steps: 1, Seed: 2})
		if !slices.EqualFunc(one.Tokens, mapped.Tokens, slices.Equal) {
			t.Errorf("%s: one device says %d, a device map %d", family, one.Tokens, mapped.Tokens)
		}
		batch, seq := int(work.Batch), int(work.Seq)
		for length := range count {
			whole := inference
			whole.Seq = int64(seq + length)
			job := jobOf(t, family, whole, 1)
			var ids [][]int32
			for sequence := range batch {
				prompt := expectedIDs(2, batch, seq, vocabOf(job))[sequence*seq : (sequence+1)*seq]
				ids = append(ids, slices.Concat(prompt, one.Tokens[sequence][:length]))
			}
			_, found := dumped(t, job, executor.Settings{Steps: 1, Tokens: tokens(t, job, ids)}, "logits")
			vocab := len(found["logits"]) / (batch * (seq + length))
			for sequence := range batch {
				end := (sequence + 1) * (seq + length) * vocab
				last := found["logits"][end-vocab : end]
				if want := slices.Index(last, slices.Max(last)); int(one.Tokens[sequence][length]) != want {
					t.Errorf("%s: sequence %d: token %d is %d, and a forward over what is before it says %d", family, sequence, length, one.Tokens[sequence][length], want)
				}
			}
		}
	}
}

// TestStopped: a sequence ends behind a stop id, and the step when all have.
func TestStopped(t *testing.T) {
	work := inference
	work.NewTokens = 6
	job := jobOf(t, "llama", work, 2)
	free := run(t, job, executor.Settings{Steps: 1, Seed: 2})
	var stop []int32
	for _, ids := range free.Tokens {
		stop = append(stop, ids[2])
	}
	settings := executor.Settings{Steps: 1, Seed: 2, Stop: stop}
	var reported [4][]int32
	settings.Watch.Token = func(sequence int64, id int32) { reported[sequence] = append(reported[sequence], id) }
	result := run(t, job, settings)
	if !result.Stopped {
		t.Error("the step did not end, and all sequences did")
	}
	for sequence, ids := range free.Tokens {
		end := slices.IndexFunc(ids, func(id int32) bool { return slices.Contains(stop, id) })
		if want := ids[:end+1]; !slices.Equal(result.Tokens[sequence], want) || !slices.Equal(reported[sequence], want) {
			t.Errorf("sequence %d is %d and was told as %d, want %d", sequence, result.Tokens[sequence], reported[sequence], want)
		}
	}
	again := run(t, job, executor.Settings{Steps: 2, Seed: 2, Stop: stop})
	if !slices.EqualFunc(again.Tokens[:4], result.Tokens, slices.Equal) || len(again.Tokens) != 8 {
		t.Errorf("a step behind one that ended early: %d", again.Tokens)
	}
}

package executor

import (
	"math/bits"
	"math/rand/v2"
)

// randomIDs fills into with the ids of sequence number, uniform in [0, vocab). Each sequence has
// its own generator (O'Neill's PCG), so that ids depend only on the seed and the sequence's number.
// They do not depend on the cut or on a run's first step.
func randomIDs(seed uint64, number, vocab int64, into []int32) {
	source := rand.NewPCG(seed, uint64(number))
	for i := range into {
		// The upper half of a product is uniform to within vocab/2^64.
		high, _ := bits.Mul64(source.Uint64(), uint64(vocab))
		into[i] = int32(high)
	}
}

// batch returns the ids of a step's sequences, concatenated.
func (settings *Settings) batch(job *Job, step int64) []int32 {
	sequences, seq := job.Workload.Batch, job.Workload.Seq
	out := make([]int32, sequences*seq)
	vocab := job.vocab()
	for i := range sequences {
		row, number := out[i*seq:(i+1)*seq], (step-1)*sequences+i
		if settings.Tokens != nil {
			copy(row, settings.Tokens.sequence(number))
		} else {
			randomIDs(settings.Seed, number, vocab, row)
		}
	}
	return out
}

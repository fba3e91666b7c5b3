package serve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/costmodel/serving/paged"
)

// RankQuestion is what is to be planned for an engine with ranks.
type RankQuestion struct {
	Model *paged.Model
	GPUs  []paged.GPU
	// Set are the engine's settings. A Context of 0 asks for the longest, degrees of 0 for the best.
	Set paged.Settings
}

// RankAnswer is a placement on ranks.
type RankAnswer struct {
	Set    paged.Settings
	Counts []int // layers of each stage
	Ranks  []paged.Rank
	// Blocks are those of the cache on every rank, and Tokens what the engine prints for them, of all
	// replicas.
	Blocks, Tokens int64
	// Limit is the GPU with the fewest blocks. Full: no longer context fits.
	Limit int
	Full  bool
	// Bound is a share of a budget that no split with as many blocks stays below.
	Bound float64
	// Own are the tokens with the engine's own split of the layers; 0: it does not start.
	Own int64
	// Seconds is the least time of a token: the weights and the cache of a full sequence, each read
	// once; 0: the bandwidth is not known.
	Seconds float64
	// Others are the answers of other degrees, the best first.
	Others []*RankAnswer
}

// SolveRanks returns the degrees and the layers of each stage with the longest context, and of these
// the most tokens in the cache. Of splits with as many blocks it takes the most even one.
func SolveRanks(question *RankQuestion) (*RankAnswer, error) {
	var answers []*RankAnswer
	var first error
	for _, degrees := range question.degrees() {
		answer, err := question.with(degrees)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		answers = append(answers, answer)
	}
	if len(answers) == 0 {
		return nil, first
	}
	slices.SortStableFunc(answers, func(one, two *RankAnswer) int {
		switch {
		case question.better(one, two):
			return -1
		case question.better(two, one):
			return 1
		}
		return 0
	})
	best := answers[0]
	best.Others = answers[1:]
	return best, nil
}

// useful are the tokens of an answer that the question can use: those of all its sequences.
func (question *RankQuestion) useful(answer *RankAnswer) int64 {
	if question.Set.Context > 0 {
		return min(answer.Tokens, answer.Set.Context*answer.Set.Sequences)
	}
	return answer.Tokens
}

func (question *RankQuestion) better(one, two *RankAnswer) bool {
	switch {
	case one.Set.Context != two.Set.Context:
		return one.Set.Context > two.Set.Context
	case question.useful(one) != question.useful(two):
		return question.useful(one) > question.useful(two)
	case one.Seconds != two.Seconds:
		return one.Seconds < two.Seconds
	}
	return one.Set.Tensor > two.Set.Tensor
}

// degrees are those that the GPUs and the model allow.
func (question *RankQuestion) degrees() (all []paged.Degrees) {
	count := int64(len(question.GPUs))
	asked := question.Set.Degrees
	wanted := func(asked, degree int64) bool { return asked == 0 || asked == degree }
	for ranks := count; ranks > 0 && len(all) == 0; ranks-- {
		for tensor := int64(1); tensor <= ranks; tensor++ {
			if ranks%tensor != 0 || !wanted(asked.Tensor, tensor) || asked.Tensor == 0 && question.Model.Takes(tensor) != nil {
				continue
			}
			for stages := int64(1); stages <= ranks/tensor; stages++ {
				data := ranks / tensor / stages
				if ranks%(tensor*stages) != 0 || !wanted(asked.Pipeline, stages) || !wanted(asked.Data, data) || stages > int64(len(question.Model.Layers)) {
					continue
				}
				all = append(all, paged.Degrees{Tensor: tensor, Pipeline: stages, Data: data, Experts: asked.Experts})
			}
		}
	}
	return all
}

// smallest is the GPU that stands for a stage: the smallest of all replicas, which share one split.
func (question *RankQuestion) smallest(degrees paged.Degrees, stage int64) paged.GPU {
	least := paged.GPU{Total: math.MaxInt64}
	for i, gpu := range question.GPUs[:degrees.Ranks()] {
		if int64(i)/degrees.Tensor%degrees.Pipeline == stage && gpu.Total < least.Total {
			least = gpu
		}
	}
	return least
}

// with solves for degrees.
func (question *RankQuestion) with(degrees paged.Degrees) (*RankAnswer, error) {
	if err := question.Model.Takes(degrees.Tensor); err != nil {
		return nil, err
	}
	answer := &RankAnswer{Set: question.Set}
	answer.Set.Degrees = degrees
	pool, err := answer.Set.Pool(question.Model)
	if err != nil {
		return nil, err
	}
	split := &split{question: question, set: &answer.Set, pool: pool}
	for stage := range degrees.Pipeline {
		split.gpus = append(split.gpus, question.smallest(degrees, stage))
	}
	return answer, split.solve(answer)
}

// split is the search for the layers of each stage.
type split struct {
	question *RankQuestion
	set      *paged.Settings
	pool     *paged.Pool
	gpus     []paged.GPU
}

// fills gives each stage as many layers as so many blocks and a share of its budget allow. It reports
// whether all layers have a place. A stage's memory grows with its layers, so that filling one stage
// after another finds a split if there is one.
func (split *split) fills(blocks int64, share float64, counts []int) bool {
	model := split.question.Model
	all, at := len(model.Layers), 0
	for stage, gpu := range split.gpus {
		later := len(split.gpus) - 1 - stage
		fits := func(count int) bool {
			rank := split.set.Rank(model, gpu, at, at+count)
			need := blocks * split.pool.BlockBytes(at, at+count)
			return float64(rank.Total()-rank.Cache+need) <= share*float64(rank.Total())
		}
		most := all - later - at
		if most < 1 {
			return false
		}
		count := most
		if later > 0 || !fits(most) {
			count = sort.Search(most, func(more int) bool { return !fits(more + 1) })
		}
		if count == 0 {
			return false
		}
		if counts != nil {
			counts[stage] = count
		}
		at += count
	}
	return at == all
}

// most is the largest number of blocks with which all layers have a place.
func (split *split) most() int64 {
	low, high := int64(0), int64(1)
	for split.fills(high, 1, nil) && high < math.MaxInt32 {
		low, high = high, 2*high
	}
	for low+1 < high {
		if middle := (low + high) / 2; split.fills(middle, 1, nil) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

var errNoCache = errors.New("the weights and buffers leave no memory for the cache")

// solve finds the longest context, and the most even split with as many blocks.
func (split *split) solve(answer *RankAnswer) error {
	trained, asked := split.question.Model.Trained, split.question.Set.Context
	blocks, request := split.most(), split.set.Request()
	if blocks < 2 {
		return fmt.Errorf("%w (%v)", errNoCache, split.set.Degrees)
	}
	longest := split.pool.Longest(blocks, max(trained, asked, 1), request)
	switch {
	case longest == 0:
		return fmt.Errorf("%w of one token (%v)", errNoCache, split.set.Degrees)
	case asked > longest:
		return fmt.Errorf("%d tokens do not fit: the longest context is %d (%v)", asked, longest, split.set.Degrees)
	case asked == 0:
		answer.Set.Context, answer.Full = longest, longest < trained
	}
	const precision = 1e-6
	low, high := 0.0, 1.0 // nothing fits into low, everything into high
	for high-low > precision {
		if middle := (low + high) / 2; split.fills(blocks, middle, nil) {
			high = middle
		} else {
			low = middle
		}
	}
	answer.Counts = make([]int, len(split.gpus))
	split.fills(blocks, high, answer.Counts)
	answer.Blocks, answer.Bound = blocks, low
	request.Length = answer.Set.Context
	answer.Tokens = answer.Set.Data * split.pool.Tokens(blocks, request)
	if own := split.fewest(paged.VLLMStages(len(split.question.Model.Layers), len(split.gpus)), nil); own >= 2 {
		answer.Own = answer.Set.Data * split.pool.Tokens(own, request)
	}
	split.fewest(answer.Counts, answer)
	return nil
}

// fewest are the blocks of a split. The answer, if any, gets what each GPU holds.
func (split *split) fewest(counts []int, answer *RankAnswer) int64 {
	fewest, at := int64(math.MaxInt64), 0
	ranks := make([]paged.Rank, len(counts))
	limit := 0
	for stage, count := range counts {
		size := split.pool.BlockBytes(at, at+count)
		ranks[stage] = split.set.Rank(split.question.Model, split.gpus[stage], at, at+count)
		if size > 0 && ranks[stage].Cache/size < fewest {
			fewest, limit = ranks[stage].Cache/size, stage
		}
		if answer != nil {
			ranks[stage].Cache = answer.Blocks * size
		}
		at += count
	}
	if answer == nil {
		return fewest
	}
	answer.Limit = limit * int(split.set.Tensor)
	at = 0
	for stage, count := range counts {
		if rate := split.gpus[stage].BytesPerSecond; rate > 0 {
			answer.Seconds += float64(split.set.Read(split.question.Model, at, at+count)) / rate
		}
		at += count
	}
	for i := range split.set.Ranks() {
		answer.Ranks = append(answer.Ranks, ranks[i/split.set.Tensor%split.set.Pipeline])
	}
	return fewest
}

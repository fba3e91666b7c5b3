package serve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/serve/internal/paged"
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
	// Limit is the fullest GPU. Full: no longer context fits.
	Limit int
	Full  bool
	// Bound is a share of a budget that no split with as many blocks stays below.
	Bound float64
	// Own are the tokens with the engine's own split of the layers; 0: it does not start.
	Own int64
	// Share is the largest part of a budget that is used.
	Share float64
	// Seconds is the least time of a token. Each GPU reads its weights and the cache of a full sequence
	// once. It is 0 if the bandwidth is not known.
	Seconds float64
	// Others are the answers of other degrees, the best first.
	Others []*RankAnswer
}

// SolveRanks returns the degrees and the layers of each stage with the longest context, and of these
// the most tokens in the cache. Of splits with as many blocks it takes the most balanced one.
func SolveRanks(question *RankQuestion) (*RankAnswer, error) {
	var answers []*RankAnswer
	all, least := question.degrees() // the fault of the degrees that come closest
	for _, degrees := range all {
		answer, err := question.with(degrees)
		switch {
		case err == nil:
			answers = append(answers, answer)
		case least == nil || closer(err, least):
			least = err
		}
	}
	if len(answers) == 0 {
		if least == nil {
			least = fmt.Errorf("no degrees for %d GPUs: asked for %v", len(question.GPUs), question.Set.Degrees)
		}
		return nil, least
	}
	slices.SortStableFunc(answers, question.compare)
	best := answers[0]
	for _, answer := range answers[1:] {
		if answer.Set.Context == best.Set.Context && float64(question.useful(answer)) >= float64(question.useful(answers[0]))*(1-band(answers[0])) && answer.Seconds < best.Seconds {
			best = answer
		}
	}
	best.Others = slices.DeleteFunc(answers, func(answer *RankAnswer) bool { return answer == best })
	return best, nil
}

// uncertain are the bytes of a rank that the prediction may miss, in either direction: graphs and the
// sampler of the second runner have no measured row.
const uncertain = 1 << 30

// slower is the part of the cache that a user gives up for a faster token.
const slower = 0.1

// band is the part of the cache that the prediction may miss, or that a faster token outweighs. Answers
// that differ by less are as good.
func band(answer *RankAnswer) float64 {
	least := int64(math.MaxInt64)
	for _, rank := range answer.Ranks {
		if rank.Cache > 0 {
			least = min(least, rank.Cache)
		}
	}
	return min(1, max(slower, uncertain/float64(least)))
}

// compare orders answers by context, tokens of the cache, and time.
func (question *RankQuestion) compare(one, two *RankAnswer) int {
	return cmp.Or(
		cmp.Compare(two.Set.Context, one.Set.Context),
		cmp.Compare(question.useful(two), question.useful(one)),
		cmp.Compare(one.Seconds, two.Seconds),
		cmp.Compare(two.Set.Tensor, one.Set.Tensor),
	)
}

// closer reports a fault that is nearer to an answer.
func closer(err, than error) bool {
	var one, two *InfeasibleRanksError
	if !errors.As(err, &one) || !errors.As(than, &two) {
		return errors.As(err, &one)
	}
	if one.Longest != two.Longest {
		return one.Longest > two.Longest
	}
	return one.Needs-one.Has < two.Needs-two.Has
}

// useful are the tokens of an answer that the question can use: those of all its sequences.
func (question *RankQuestion) useful(answer *RankAnswer) int64 {
	if question.Set.Context > 0 {
		return min(answer.Tokens, answer.Set.Context*answer.Set.Sequences)
	}
	return answer.Tokens
}

// degrees are those that the GPUs and the model allow. The fault is one that the engine does not take.
func (question *RankQuestion) degrees() (all []paged.Degrees, fault error) {
	count := int64(len(question.GPUs))
	asked := question.Set.Degrees
	wanted := func(asked, degree int64) bool { return asked == 0 || asked == degree }
	for ranks := count; ranks > 0 && len(all) == 0; ranks-- {
		for tensor := int64(1); tensor <= ranks; tensor++ {
			if ranks%tensor != 0 || !wanted(asked.Tensor, tensor) {
				continue
			}
			for stages := int64(1); stages <= ranks/tensor; stages++ {
				data := ranks / tensor / stages
				if ranks%(tensor*stages) != 0 || !wanted(asked.Pipeline, stages) || !wanted(asked.Data, data) || stages > int64(len(question.Model.Layers)) {
					continue
				}
				degrees := paged.Degrees{Tensor: tensor, Pipeline: stages, Data: data, Experts: asked.Experts}
				if asked.Experts < 0 {
					degrees.Experts = tensor
					if question.Set.Engine == paged.VLLM {
						degrees.Experts *= data
					}
				}
				if err := question.Set.Admits(question.Model, degrees); err != nil {
					fault = err
					continue
				}
				all = append(all, degrees)
			}
		}
	}
	return all, fault
}

// smallest is the GPU that decides for a stage: the smallest of all replicas, which share one split.
func (question *RankQuestion) smallest(degrees paged.Degrees, stage int64) paged.GPU {
	least := paged.GPU{Total: math.MaxInt64}
	for i, gpu := range question.GPUs[:degrees.Ranks()] {
		if degrees.StageOf(i) == stage && gpu.Total < least.Total {
			least = gpu
		}
	}
	return least
}

// of is the search for degrees.
func (question *RankQuestion) of(degrees paged.Degrees) (*split, error) {
	if err := question.Set.Admits(question.Model, degrees); err != nil {
		return nil, err
	}
	split := &split{question: question, set: question.Set}
	split.set.Degrees = degrees
	for stage := range degrees.Pipeline {
		split.gpus = append(split.gpus, question.smallest(degrees, stage))
	}
	var err error
	split.pool, err = split.set.Pool(question.Model)
	return split, err
}

// with solves for degrees.
func (question *RankQuestion) with(degrees paged.Degrees) (*RankAnswer, error) {
	split, err := question.of(degrees)
	if err != nil {
		return nil, err
	}
	counts, bound := split.best()
	return split.answer(counts, bound)
}

// Given is what each GPU holds for the degrees of the question and so many layers of each stage. The
// error is for degrees that do not suit the stages or the GPUs.
func (question *RankQuestion) Given(counts []int) (*RankAnswer, error) {
	degrees, gpus := question.Set.Degrees, int64(len(question.GPUs))
	if least := min(degrees.Tensor, degrees.Pipeline, degrees.Data); least < 1 || max(degrees.Tensor, degrees.Pipeline, degrees.Data) > gpus || degrees.Ranks() > gpus || degrees.Pipeline != int64(len(counts)) {
		return nil, fmt.Errorf("tp %d, pp %d and dp %d do not suit %d stages on %d GPUs", degrees.Tensor, degrees.Pipeline, degrees.Data, len(counts), gpus)
	}
	split, err := question.of(question.Set.Degrees)
	if err != nil {
		return nil, err
	}
	return split.answer(counts, 0)
}

// InfeasibleRanksError is a question that no degrees answer.
type InfeasibleRanksError struct {
	Degrees paged.Degrees
	GPU     int   // one without room
	Needs   int64 // bytes of its weights and buffers
	Has     int64 // bytes that the engine may use
	Context int64 // tokens that do not fit
	Longest int64 // tokens that fit; 0: none
}

// Error implements error.
func (err *InfeasibleRanksError) Error() string {
	if err.Longest > 0 {
		return fmt.Sprintf("nothing fits: the cache has room for a context of %d tokens, not %d (%v)", err.Longest, err.Context, err.Degrees)
	}
	return fmt.Sprintf("nothing fits: GPU %d needs %v for weights and buffers (%v), and the engine may use %v of it", err.GPU, costmodel.Bytes(err.Needs), err.Degrees, costmodel.Bytes(err.Has))
}

// full is the error of a split without room for the cache.
func (split *split) full(counts []int) error {
	err := &InfeasibleRanksError{Degrees: split.set.Degrees}
	at := 0
	for stage, count := range counts {
		rank := split.set.Rank(split.question.Model, split.gpus[stage], at, at+count)
		if needs, has := rank.Total()-rank.Cache, rank.Total(); stage == 0 || needs-has > err.Needs-err.Has {
			err.GPU, err.Needs, err.Has = stage*int(split.set.Tensor), needs, has
		}
		at += count
	}
	return err
}

// answer is what a split gives: the longest context, and what each GPU holds.
func (split *split) answer(counts []int, bound float64) (*RankAnswer, error) {
	model, asked := split.question.Model, split.question.Set.Context
	answer := &RankAnswer{Set: split.set}
	answer.Set.Share = split.set.Fraction(model, split.gpus[0])
	blocks, ranks := split.set.Split(model, split.pool, split.gpus, counts)
	longest := int64(0)
	request := split.set.Request(model)
	if blocks > 1 {
		longest = split.pool.Longest(blocks, max(model.Trained, asked), request)
	}
	switch {
	case longest == 0:
		return nil, split.full(counts)
	case asked > longest:
		return nil, &InfeasibleRanksError{Degrees: split.set.Degrees, Context: asked, Longest: longest}
	case asked == 0:
		answer.Set.Context, answer.Full = longest, longest < model.Trained
	}
	request.Length = answer.Set.Context
	answer.Counts, answer.Blocks, answer.Bound = counts, blocks, bound
	answer.Tokens = answer.Set.Data * split.pool.Tokens(blocks, request)
	if own := split.blocks(split.set.Stages(len(model.Layers), len(split.gpus))); own > 1 {
		answer.Own = answer.Set.Data * split.pool.Tokens(own, request)
	}
	at := 0
	for stage, count := range counts {
		gpu := split.gpus[stage]
		if share := float64(ranks[stage].Total()) / float64(gpu.Free); share > answer.Share {
			answer.Share, answer.Limit = share, stage*int(split.set.Tensor)
		}
		if gpu.BytesPerSecond > 0 {
			answer.Seconds += float64(split.set.Read(model, at, at+count)) / gpu.BytesPerSecond
		}
		at += count
	}
	for gpu := range int(split.set.Ranks()) {
		answer.Ranks = append(answer.Ranks, ranks[split.set.StageOf(gpu)])
	}
	answer.Bound = min(answer.Bound, answer.Share)
	return answer, nil
}

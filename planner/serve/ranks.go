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
	// Seconds is the least time of a token: the weights and the cache of a full sequence, each read
	// once; 0: the bandwidth is not known.
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
				if fault = cmp.Or(question.Set.Admits(question.Model, degrees), fault); question.Set.Admits(question.Model, degrees) == nil {
					all = append(all, degrees)
				}
			}
		}
	}
	return all, fault
}

// smallest is the GPU that decides for a stage: the smallest of all replicas, which share one split.
func (question *RankQuestion) smallest(degrees paged.Degrees, stage int64) paged.GPU {
	least := paged.GPU{Total: math.MaxInt64}
	for i, gpu := range question.GPUs[:degrees.Ranks()] {
		if int64(i)/degrees.Tensor%degrees.Pipeline == stage && gpu.Total < least.Total {
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

// split is the search for the layers of each stage.
type split struct {
	question *RankQuestion
	set      paged.Settings
	pool     *paged.Pool
	gpus     []paged.GPU
}

// blocks are those of the cache for a split.
func (split *split) blocks(counts []int) int64 {
	blocks, _ := split.set.Split(split.question.Model, split.pool, split.gpus, counts)
	return blocks
}

// fills gives each stage layers, at least one, as fits allows, and reports whether all have a place. A
// stage's memory grows with its layers: from each layer it reaches some end, and from a later layer
// none before that.
func (split *split) fills(counts []int, fits func(stage, first, end int) bool) bool {
	all := len(split.question.Model.Layers)
	reached := make([][]bool, len(counts)+1) // before each stage, the layers with which it can begin
	for stage := range reached {
		reached[stage] = make([]bool, all+1)
	}
	reached[0][0] = true
	for stage := range counts {
		for at, end := 0, 0; at < all; at++ {
			if !reached[stage][at] {
				continue
			}
			end = max(end, at)
			for end < all && fits(stage, at, end+1) {
				end++
			}
			for next := at + 1; next <= end; next++ {
				reached[stage+1][next] = true
			}
		}
	}
	if !reached[len(counts)][all] {
		return false
	}
	end := all
	for stage := len(counts) - 1; stage >= 0; stage-- {
		first := end - 1
		for !reached[stage][first] || !fits(stage, first, end) {
			first--
		}
		counts[stage] = end - first
		end = first
	}
	return true
}

// best is a split with the most blocks, and of these the most balanced one. No split with as many
// blocks has a largest share of bound or less.
func (split *split) best() (counts []int, bound float64) {
	counts = make([]int, len(split.gpus))
	if split.set.Engine == paged.SGLang {
		return split.bestOfLeast(counts)
	}
	within := func(blocks int64, share float64) func(stage, first, end int) bool {
		return func(stage, first, end int) bool {
			gpu := split.gpus[stage]
			rank := split.set.Rank(split.question.Model, gpu, first, end)
			needs := rank.Total() - rank.Cache + split.pool.Bytes(blocks, first, end)
			return needs <= rank.Total() && float64(needs) <= share*float64(gpu.Free)
		}
	}
	low, high := int64(0), int64(1)
	for split.fills(counts, within(high, 1)) && high < math.MaxInt32 {
		low, high = high, 2*high
	}
	for low+1 < high {
		if middle := (low + high) / 2; split.fills(counts, within(middle, 1)) {
			low = middle
		} else {
			high = middle
		}
	}
	if low == 0 {
		return split.set.Stages(len(split.question.Model.Layers), len(split.gpus)), 0
	}
	const precision = 1e-9
	none, all := 0.0, 1.0 // nothing fits into none, everything into all
	for all-none > precision {
		if middle := (none + all) / 2; split.fills(counts, within(low, middle)) {
			all = middle
		} else {
			none = middle
		}
	}
	split.fills(counts, within(low, all))
	return counts, none
}

// bestOfLeast is the search for an engine whose ranks all have what the fullest one has left: for each
// number of layers that a stage may have at most, the split whose fullest rank has the most left.
func (split *split) bestOfLeast(counts []int) ([]int, float64) {
	model := split.question.Model
	best := split.set.Stages(len(model.Layers), len(split.gpus))
	if len(split.gpus) == 1 {
		return best, 1
	}
	most := split.blocks(best)
	ends := make([]int64, len(model.Layers)+1) // bytes of the layers before each
	for i := range model.Layers {
		ends[i+1] = ends[i] + split.set.Weights(model, i, i+1)
	}
	const precision = 1 << 10
	weights := func(first, end int) int64 {
		return ends[end] - ends[first] - int64(end-first-1)*model.Rope
	}
	for limit := (len(model.Layers) + len(counts) - 1) / len(counts); limit <= len(model.Layers)-len(counts)+1; limit++ {
		low, high := int64(math.MinInt32)<<8, int64(math.MaxInt32)<<16 // bytes that the fullest has left: low fits, high does not
		within := func(left int64) func(stage, first, end int) bool {
			return func(stage, first, end int) bool {
				return end-first <= limit && weights(first, end)+left <= split.gpus[stage].Free
			}
		}
		if !split.fills(counts, within(low)) {
			continue
		}
		for low+precision < high {
			if middle := (low + high) / 2; split.fills(counts, within(middle)) {
				low = middle
			} else {
				high = middle
			}
		}
		split.fills(counts, within(low))
		if blocks := split.blocks(counts); blocks > most {
			best, most = slices.Clone(counts), blocks
		}
	}
	return best, 1
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
	for i := range split.set.Ranks() {
		answer.Ranks = append(answer.Ranks, ranks[i/split.set.Tensor%split.set.Pipeline])
	}
	answer.Bound = min(answer.Bound, answer.Share)
	return answer, nil
}

package serve

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/serving"
)

// sampled is a random question with few blocks.
func sampled(random *rand.Rand) Question {
	model := &serving.Model{Width: 256 * (1 + random.Int64N(4)), Vocabulary: 4096, Trained: 256 * (4 + random.Int64N(60)), Input: 1 << 20, Output: 1 << (20 + random.IntN(3))}
	for range 1 + random.IntN(6) {
		model.Blocks = append(model.Blocks, serving.Block{
			Bytes: 1 << 20 * (1 + random.Int64N(8)), Key: 256, Value: 256, Heads: 4, FeedForward: 1024 * (1 + random.Int64N(3)),
		})
	}
	question := Question{Model: model, Set: serving.LlamaCPP{Sequences: 1 + random.Int64N(2), KeyType: "f16", ValueType: "q8_0", UBatch: 128, Outputs: 128}}
	for range 1 + random.IntN(3) {
		question.Devices = append(question.Devices, Device{Budget: 1 << 20 * (4 + random.Int64N(40)), Context: 1 << 20 * random.Int64N(4), Margin: 1 << 20 * random.Int64N(4)})
	}
	if random.IntN(3) == 0 {
		draft := *model
		draft.Blocks = model.Blocks[:1]
		question.Draft, question.DraftOn = &draft, random.IntN(len(question.Devices))
	}
	if random.IntN(3) == 0 {
		question.Encoder = &serving.Encoder{Weights: 1 << 20 * random.Int64N(4), Compute: 1 << 19}
	}
	return question
}

// splits lists all ways to give devices units in order.
func splits(units, devices int, each func(counts []int)) {
	counts := make([]int, devices)
	var give func(device, left int)
	give = func(device, left int) {
		if device == devices-1 {
			counts[device] = left
			each(counts)
			return
		}
		for counts[device] = 0; counts[device] <= left; counts[device]++ {
			give(device+1, left-counts[device])
		}
	}
	give(0, units)
}

// smallest is the smallest largest share of all splits, by trying all; above 1 if none fits.
func (question *Question) smallest(set serving.LlamaCPP) (share float64) {
	share = 2
	splits(question.Model.Units()-int(set.HostBlocks), len(question.Devices), func(counts []int) {
		used, _ := set.Devices(question.Model, counts)
		largest := 0.0
		for i, device := range question.Devices {
			bytes := used[i].Total()
			if question.Draft != nil && question.DraftOn == i {
				alone := serving.LlamaCPP{Context: set.Context, Sequences: set.Sequences, KeyType: set.KeyType, ValueType: set.ValueType, UBatch: set.UBatch, Outputs: set.Sequences}
				bytes += alone.Run(question.Draft, 0, question.Draft.Units()).Total()
			}
			if question.Encoder != nil && i == 0 {
				bytes += question.Encoder.Weights + question.Encoder.Compute
			}
			largest = max(largest, float64(bytes+device.Overhead(int(bytes)))/float64(device.Budget))
		}
		share = min(share, largest)
	})
	return share
}

// TestSolve: no split of all has a longer context, fewer blocks on the host or a smaller share.
func TestSolve(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	solved, none, hosted := 0, 0, 0
	for range 300 {
		question := sampled(random)
		answer, err := Solve(question)
		if err != nil {
			if !errors.As(err, new(*InfeasibleError)) {
				t.Fatal(err)
			}
			set := question.settings(placed{host: len(question.Model.Blocks)}, min(shortest, question.Model.Trained))
			if share := question.smallest(set); share <= 1 {
				t.Errorf("%+v: refused, and with all blocks on the host the share is %v", question, share)
			}
			none++
			continue
		}
		solved++
		set := answer.Set
		if share := question.smallest(set); share > answer.Share+1e-9 || share < answer.Bound-1e-9 || answer.Share > answer.Bound+1e-6 {
			t.Errorf("share %v, bound %v, and the smallest is %v", answer.Share, answer.Bound, share)
		}
		if set.Context < question.Model.Trained {
			longer := set
			longer.Context += step
			if share := question.smallest(longer); share <= 1 {
				t.Errorf("%d tokens, and %d fit with a share of %v", set.Context, longer.Context, share)
			}
		}
		if host := int(set.HostBlocks); host > 0 {
			hosted++
			less := question.settings(placed{host: host - 1}, min(shortest, question.Model.Trained))
			if share := question.smallest(less); share <= 1 {
				t.Errorf("%d blocks on the host, and %d are enough", host, host-1)
			}
		}
	}
	t.Logf("%d answers, %d of them with blocks on the host; %d without", solved, hosted, none)
	if solved < 100 || hosted < 20 || none < 5 {
		t.Error("too few of a kind")
	}
}

// TestFaster: of all splits of up to three devices with no larger share than the answer's, none reads the weights
// and the cache of a token in less time.
func TestFaster(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 4))
	moved, compared := 0, 0
	for range 300 {
		question := sampled(random)
		for i := range question.Devices {
			question.Devices[i].Bandwidth = 1e9 * (1 + random.Float64())
		}
		answer, err := Solve(question)
		if err != nil {
			continue
		}
		compared++
		least := answer.Seconds(&question, answer.Set.Context)
		splits(question.Model.Units()-int(answer.Set.HostBlocks), len(question.Devices), func(counts []int) {
			other := question.placed(answer.Set, slices.Clone(counts))
			if seconds := other.Seconds(&question, answer.Set.Context); other.Share <= answer.Share && seconds < least*(1-1e-9) {
				t.Errorf("%v takes %v s, and %v %v s", answer.Counts, least, counts, seconds)
			}
		})
		question.Devices[0].Bandwidth = 0
		if plain, err := Solve(question); err == nil && !slices.Equal(plain.Counts, answer.Counts) {
			moved++
		}
	}
	t.Logf("%d splits, %d of them moved to a faster device", compared, moved)
	if compared < 100 || moved < 4 {
		t.Error("too few")
	}
}

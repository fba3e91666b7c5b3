package executor_test

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// dumped are all tensors of a run's first step.
func dumped(t *testing.T, job *executor.Job, settings executor.Settings, kinds ...string) (*executor.Result, map[string][]float32) {
	t.Helper()
	folder := t.TempDir()
	for _, kind := range kinds {
		path := filepath.Join(folder, kind)
		switch kind {
		case "logits":
			settings.Dump.Logits = path
		case "hidden":
			settings.Dump.Hidden = path
		case "grads":
			settings.Dump.Grads = path
		}
	}
	result := run(t, job, settings)
	found := make(map[string][]float32)
	for _, kind := range kinds {
		for name, values := range tensors(t, filepath.Join(folder, kind)) {
			found[name] = values
		}
	}
	return result, found
}

// TestDumpedLogits: the logits of training, made a part at a time and capped, equal those of
// inference. The loss follows from them: the mean over the micro-batches of the loss of each next
// token.
func TestDumpedLogits(t *testing.T) {
	for _, family := range []string{"llama", "gemma2"} {
		job := jobOf(t, family, training, 2)
		result, trained := dumped(t, job, executor.Settings{Steps: 1, Optimizer: adamW, Seed: 3}, "logits", "hidden")
		_, inferred := dumped(t, jobOf(t, family, inference, 3), executor.Settings{Steps: 1, Seed: 3}, "logits", "hidden")
		for _, name := range []string{"logits", "hidden"} {
			if len(trained[name]) == 0 || len(trained[name]) != len(inferred[name]) || distance(trained[name], wide(inferred[name])) > 1e-6 {
				t.Errorf("%s: %s of training are not those of inference", family, name)
			}
		}
		batch, seq := int(job.Workload.Batch), int(job.Workload.Seq)
		vocab := len(trained["logits"]) / (batch * seq)
		loss, ids := 0.0, expectedIDs(3, batch, seq, vocab)
		for at := range batch * seq {
			if at%seq < seq-1 {
				loss -= logSoftmax(trained["logits"][at*vocab:(at+1)*vocab], ids[at+1]) / float64(batch*(seq-1))
			}
		}
		if math.Abs(loss-result.Steps[0].Loss) > 1e-6 {
			t.Errorf("%s: the dumped logits give a loss of %.8f, and the step's is %.8f", family, loss, result.Steps[0].Loss)
		}
	}
}

// TestDumpedRounded: in bf16 capped logits of training are the bits of those of
// inference, whose kernel rounds after each operation.
func TestDumpedRounded(t *testing.T) {
	dump := func(work costmodel.Workload, optimizer executor.Optimizer) []float32 {
		work.Precision = costmodel.BF16True
		_, found := dumped(t, jobOf(t, "gemma2", work, 2), executor.Settings{Steps: 1, Optimizer: optimizer, Seed: 3}, "logits")
		return found["logits"]
	}
	if trained := dump(training, adamW); len(trained) == 0 || !slices.Equal(trained, dump(inference, executor.Optimizer{})) {
		t.Error("logits of training are not those of inference")
	}
}

// TestDumpedOnce: the dump has the tensors of the first step only, however many follow.
func TestDumpedOnce(t *testing.T) {
	job := jobOf(t, "llama", training, 2)
	_, once := dumped(t, job, executor.Settings{Steps: 1, Optimizer: adamW, Seed: 3}, "logits", "hidden", "grads")
	_, first := dumped(t, job, executor.Settings{Steps: 3, Optimizer: adamW, Seed: 3}, "logits", "hidden", "grads")
	if len(once) == 0 || !maps.EqualFunc(once, first, slices.Equal) {
		t.Error("tensors of a run of three steps are not those of its first")
	}
}

// TestDumpedHidden: what BERT's layers make is dumped, not what the projection
// behind them does that only its head has: that one's weights change nothing.
func TestDumpedHidden(t *testing.T) {
	job := jobOf(t, "bert", inference, 2)
	_, as := dumped(t, job, executor.Settings{Steps: 1, Seed: 3}, "hidden", "logits")
	source := &without{weights.Random(job.Graph, 11), "cls.predictions.transform.dense.weight"}
	_, without := dumped(t, job, executor.Settings{Steps: 1, Seed: 3, Weights: source}, "hidden", "logits")
	if len(as["hidden"]) == 0 || !slices.Equal(as["hidden"], without["hidden"]) || slices.Equal(as["logits"], without["logits"]) {
		t.Error("the hidden states are those of the head's projection")
	}
}

// without is a source in which a parameter is 0.
type without struct {
	weights.Source
	parameter string
}

func (source *without) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func([]byte) error) error {
	return source.Source.Stream(ctx, name, dtype, func(chunk []byte) error {
		if name == source.parameter {
			chunk = make([]byte, len(chunk))
		}
		return emit(chunk)
	})
}

func logSoftmax(logits []float32, at int32) float64 {
	most, sum := float64(slices.Max(logits)), 0.0
	for _, logit := range logits {
		sum += math.Exp(float64(logit) - most)
	}
	return float64(logits[at]) - most - math.Log(sum)
}

// expectedIDs returns the ids of a batch as the documentation defines them.
func expectedIDs(seed uint64, batch, seq, vocab int) []int32 {
	ids := make([]int32, 0, batch*seq)
	for sequence := range batch {
		source := rand.NewPCG(seed, uint64(sequence))
		for range seq {
			high, _ := bits.Mul64(source.Uint64(), uint64(vocab))
			ids = append(ids, int32(high))
		}
	}
	return ids
}

// TestGradientsOfMicroBatches: those of micro-batches add up to the gradient of
// the mean over the batch, tied ones to one, wherever their uses are.
func TestGradientsOfMicroBatches(t *testing.T) {
	for _, family := range []string{"llama-tied", "gpt2", "gemma"} {
		work := training
		work.MicroBatches = 1
		_, whole := dumped(t, jobOf(t, family, work, 1), executor.Settings{Steps: 1, Optimizer: adamW}, "grads")
		for _, parts := range []int64{2, 4} {
			work.MicroBatches = parts
			_, split := dumped(t, jobOf(t, family, work, 3), executor.Settings{Steps: 1, Optimizer: adamW}, "grads")
			if len(whole) == 0 || len(whole) != len(split) {
				t.Fatalf("%s: %d gradients of one batch, %d of %d micro-batches", family, len(whole), len(split), parts)
			}
			for name, values := range whole {
				if apart := distance(split[name], wide(values)); !(apart < 2e-6) {
					t.Errorf("%s: %s of %d micro-batches is %.3g from that of one", family, name, parts, apart)
				}
			}
		}
	}
}

// TestUpdates computes the optimizers' steps again in float64, from the gradients and the values
// before the step: torch.optim.AdamW and SGD, with clip_grad_norm_ before them. The second step
// begins with the first one's moments.
func TestUpdates(t *testing.T) {
	for _, optimizer := range []string{costmodel.AdamW, costmodel.SGD} {
		for _, clip := range []float64{0, 0.05} {
			work := training
			work.Optimizer = optimizer
			job := jobOf(t, "llama-tied", work, 2)
			settings := executor.Settings{Steps: 1, Optimizer: adamW}
			settings.Optimizer.Clip = clip
			before := randomWeights(t, job)
			for step := range 2 {
				folder := t.TempDir()
				settings.Dump.Grads, settings.Save.State = filepath.Join(folder, "grads"), filepath.Join(folder, "state")
				run(t, job, settings)
				gradients, after := tensors(t, settings.Dump.Grads), tensors(t, filepath.Join(settings.Save.State, "state.safetensors"))
				update := &update{optimizer, settings.Optimizer, step + 1, clipped(t, gradients, clip)}
				for name, gradient := range gradients {
					update.check(t, name, gradient, before, after)
				}
				before, settings.Resume = after, settings.Save.State
			}
		}
	}
}

// clipped is what gradients are multiplied by.
func clipped(t *testing.T, gradients map[string][]float32, clip float64) float64 {
	t.Helper()
	if clip == 0 {
		return 1
	}
	sum := 0.0
	for _, gradient := range gradients {
		for _, value := range gradient {
			sum += float64(value) * float64(value)
		}
	}
	factor := clip / (math.Sqrt(sum) + 1e-6)
	if factor >= 1 {
		t.Fatalf("a norm of %v is not clipped: the test shows nothing", math.Sqrt(sum))
	}
	return factor
}

// update is a step of an optimizer.
type update struct {
	kind   string
	with   executor.Optimizer
	step   int
	factor float64 // of gradients
}

// check computes a parameter again and compares it with the one after the step.
func (update *update) check(t *testing.T, name string, gradient []float32, before, after map[string][]float32) {
	t.Helper()
	for i, value := range gradient {
		weight := float64(before[name][i])
		want := update.of(weight, update.factor*float64(value), at(before[name+".mean"], i), at(before[name+".square"], i))
		apart := math.Abs(float64(after[name][i]) - want)
		if !(apart <= 2e-7*math.Abs(want)+1e-4*math.Abs(want-weight)) {
			t.Errorf("%+v: %s[%d] goes from %v to %v, want %v", update, name, i, weight, after[name][i], want)
			return
		}
	}
}

// at returns 0 if there are no values yet.
func at(values []float32, i int) float64 {
	if values == nil {
		return 0
	}
	return float64(values[i])
}

func (update *update) of(weight, gradient, mean, square float64) float64 {
	with := update.with
	if update.kind == costmodel.SGD {
		return weight - with.Rate*(gradient+with.Decay*weight)
	}
	weight -= with.Rate * with.Decay * weight
	mean = with.Beta1*mean + (1-with.Beta1)*gradient
	square = with.Beta2*square + (1-with.Beta2)*gradient*gradient
	mean /= 1 - math.Pow(with.Beta1, float64(update.step))
	square /= 1 - math.Pow(with.Beta2, float64(update.step))
	return weight - with.Rate*mean/(math.Sqrt(square)+with.Epsilon)
}

// randomWeights returns the weights that run begins with.
func randomWeights(t *testing.T, job *executor.Job) map[string][]float32 {
	t.Helper()
	source, found := weights.Random(job.Graph, 11), make(map[string][]float32)
	for _, entry := range weights.Parameters(job.Graph, modelgraph.F32) {
		err := source.Stream(context.Background(), entry.Name, modelgraph.F32, func(chunk []byte) error {
			for at := 0; at < len(chunk); at += 4 {
				found[entry.Name] = append(found[entry.Name], math.Float32frombits(binary.LittleEndian.Uint32(chunk[at:])))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

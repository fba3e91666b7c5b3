package executor_test

import (
	"context"
	"encoding/binary"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
	"math"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
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
	if settings.Save.State == "here" {
		settings.Save.State = filepath.Join(folder, "state")
	}
	result := run(t, job, settings)
	found := make(map[string][]float32)
	for _, kind := range kinds {
		for name, values := range tensors(t, filepath.Join(folder, kind)) {
			found[name] = values
		}
	}
	if settings.Save.State != "" {
		for name, values := range tensors(t, filepath.Join(settings.Save.State, "state.safetensors")) {
			found["after "+name] = values
		}
	}
	return result, found
}

// TestDumpedLogits: those of training, made a part at a time and capped, are
// those of inference, and the loss is theirs: the mean over the micro-batches
// of what each token gives the next.
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
		loss, ids := 0.0, drawnAgain(3, batch, seq, vocab)
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

func logSoftmax(logits []float32, at int32) float64 {
	most, sum := float64(slices.Max(logits)), 0.0
	for _, logit := range logits {
		sum += math.Exp(float64(logit) - most)
	}
	return float64(logits[at]) - most - math.Log(sum)
}

// drawnAgain are the ids of a batch by what is documented of them.
func drawnAgain(seed uint64, batch, seq, vocab int) []int32 {
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

// TestUpdates works the optimizers' steps out again in float64, from the
// gradients and the weights that a run began with: torch.optim.AdamW and SGD,
// with clip_grad_norm_ before them.
func TestUpdates(t *testing.T) {
	for _, optimizer := range []string{costmodel.AdamW, costmodel.SGD} {
		for _, clip := range []float64{0, 0.05} {
			work := training
			work.Optimizer = optimizer
			job := jobOf(t, "llama-tied", work, 2)
			settings := executor.Settings{Steps: 1, Optimizer: adamW}
			settings.Optimizer.Clip, settings.Optimizer.Rate = clip, 1e-2
			settings.Save.State = "here"
			_, found := dumped(t, job, settings, "grads")
			before := drawnWeights(t, job)
			norm := 0.0
			for name, weight := range before {
				for i := range weight {
					norm += float64(found[name][i]) * float64(found[name][i])
				}
			}
			norm = math.Sqrt(norm)
			factor := 1.0
			if clip > 0 {
				factor = min(1, clip/(norm+1e-6))
			}
			if clip > 0 && factor == 1 {
				t.Fatalf("a norm of %v is not clipped: the test shows nothing", norm)
			}
			for name, weight := range before {
				for i, value := range weight {
					want := updated(optimizer, &settings.Optimizer, float64(value), factor*float64(found[name][i]))
					apart := math.Abs(float64(found["after "+name][i]) - want)
					if !(apart <= 2e-7*math.Abs(want)+1e-4*math.Abs(want-float64(value))) {
						t.Errorf("%s, clip %v: %s[%d] goes from %v to %v, want %v", optimizer, clip, name, i, value, found["after "+name][i], want)
						break
					}
				}
			}
		}
	}
}

// updated is a weight after the first step.
func updated(optimizer string, with *executor.Optimizer, weight, gradient float64) float64 {
	if optimizer == costmodel.SGD {
		return weight - with.Rate*(gradient+with.Decay*weight)
	}
	weight -= with.Rate * with.Decay * weight
	mean, square := (1-with.Beta1)*gradient, (1-with.Beta2)*gradient*gradient
	return weight - with.Rate*mean/(1-with.Beta1)/(math.Sqrt(square/(1-with.Beta2))+with.Epsilon)
}

// drawnWeights are those that run begins with.
func drawnWeights(t *testing.T, job *executor.Job) map[string][]float32 {
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

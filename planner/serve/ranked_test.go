package serve

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/serve/internal/paged"
)

// asked is the question of a built-in model on GPUs of the catalogue.
func asked(t *testing.T, model, gpu string, count int, workload costmodel.Workload, reserved int64) (*RankQuestion, error) {
	t.Helper()
	found := fixtures.Must(catalogue.Find(gpu))(t)
	device := found.Device(costmodel.Infer)
	device.ReservedBytes = reserved
	return RankQuestionOf(builtIn(t, model), &workload, &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{device}, count)})
}

// TestStageOf: tensor ranks are next to each other, then stages, then replicas.
func TestStageOf(t *testing.T) {
	degrees := paged.Degrees{Tensor: 2, Pipeline: 2, Data: 2}
	for gpu, want := range []int64{0, 0, 1, 1, 0, 0, 1, 1} {
		if found := degrees.StageOf(gpu); found != want {
			t.Errorf("GPU %d: stage %d, want %d", gpu, found, want)
		}
	}
}

// TestExpertsOfSGLang: they are spread over ranks of tensor parallelism alone.
func TestExpertsOfSGLang(t *testing.T) {
	question := fixtures.Must(asked(t, "mixtral-8x7b", "h100-80gb", 4, costmodel.Workload{Runtime: costmodel.SGLang, EP: 4}, 0))(t)
	if answer, err := SolveRanks(question); err != nil || answer.Set.Tensor != 4 {
		t.Errorf("%+v, %v: want tp 4", answer, err)
	}
	question.Set.Tensor = 2
	if _, err := SolveRanks(question); err == nil || !strings.Contains(err.Error(), "SGLang spreads experts over ranks of tp") {
		t.Errorf("ep 4 with tp 2: %v", err)
	}
}

// TestFastestOfNear: of degrees whose tokens differ by less than a tenth the fastest wins.
func TestFastestOfNear(t *testing.T) {
	question := fixtures.Must(asked(t, "llama-3.1-405b", "h100-80gb", 32, costmodel.Workload{Runtime: costmodel.SGLang}, 0))(t)
	answer := fixtures.Must(SolveRanks(question))(t)
	for _, other := range answer.Others {
		if near := float64(other.Tokens) < 1.1*float64(answer.Tokens); other.Tokens > answer.Tokens && (!near || other.Seconds < answer.Seconds) {
			t.Errorf("%v has %d tokens and %v s, and %v was taken with %d and %v s", other.Set.Degrees, other.Tokens, other.Seconds, answer.Set.Degrees, answer.Tokens, answer.Seconds)
		}
	}
	if answer.Set.Tensor != 8 {
		t.Errorf("%v, want tp 8", answer.Set.Degrees)
	}
}

// TestLessMemory: vLLM gets a smaller part of a GPU that others use, and a given part must be free.
func TestLessMemory(t *testing.T) {
	const reserved = 4 << 30
	question := fixtures.Must(asked(t, "llama-3.1-8b", "rtx-4090", 2, costmodel.Workload{Runtime: costmodel.VLLM}, reserved))(t)
	if gpu := question.GPUs[0]; float64(gpu.Total)*question.Set.Share > float64(gpu.Free) {
		t.Errorf("a share of %v with %d of %d bytes free", question.Set.Share, gpu.Free, gpu.Total)
	}
	if _, err := asked(t, "llama-3.1-8b", "rtx-4090", 2, costmodel.Workload{Runtime: costmodel.VLLM, MemFraction: 0.92}, reserved); err == nil {
		t.Error("a share of 0.92 starts")
	}
}

// TestLessThanPredicted: a log with less than the prediction leaves no negative bytes.
func TestLessThanPredicted(t *testing.T) {
	workload := costmodel.Workload{Runtime: costmodel.VLLM}
	workload.CalibratedBytes = -1 << 33
	question := fixtures.Must(asked(t, "llama-3.1-8b", "h100-80gb", 1, workload, 0))(t)
	answer := fixtures.Must(SolveRanks(question))(t)
	if rank := answer.Ranks[0]; rank.Other < 0 || rank.Activation < 0 {
		t.Errorf("%+v", rank)
	}
}

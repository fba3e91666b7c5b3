package recipe_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// small is one of backendtest's models, of every family that the engine runs.
func small(tb testing.TB, name string) *modelgraph.Graph {
	tb.Helper()
	graph := fixtures.Must(backendtest.Graph(backendtest.Families[name]))(tb)
	return graph
}

// smallWorkloads are all ways to run a small model.
func smallWorkloads() map[string]costmodel.Workload {
	base := costmodel.Workload{Batch: 4, MicroBatches: 2, Seq: 6, Precision: costmodel.BF16True}
	train := base
	train.Mode, train.Optimizer, train.Recompute = costmodel.Train, costmodel.AdamW, costmodel.RecomputeNone
	full, mixed, single, infer, generate := train, train, train, base, base
	full.Recompute = costmodel.RecomputeFull
	mixed.Precision = costmodel.BF16Mixed
	single.Precision, single.Optimizer = costmodel.FP32True, costmodel.SGD
	infer.Mode, generate.Mode = costmodel.Infer, costmodel.Infer
	generate.NewTokens = 5
	split, splitFull := train, full
	split.Schedule, splitFull.Schedule = costmodel.ZBH1, costmodel.ZBH1
	return map[string]costmodel.Workload{"train": train, "recompute": full, "split": split, "split recompute": splitFull, "mixed": mixed, "fp32": single, "infer": infer, "generate": generate}
}

// chainOf is a random chain.
func chainOf(tb testing.TB, random *rand.Rand) *modelgraph.Graph {
	tb.Helper()
	graph := fixtures.Must(backendtest.RandomChain(random))(tb)
	return graph
}

package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// even returns a pipeline of equal chunks: one a GPU, or two in a V. used is the budget
// of each GPU, in chunks.
func even(gpus, batches int, vee bool, used int64) Problem {
	out := Problem{MicroBatches: batches, Caps: slices.Repeat([]int64{used}, gpus)}
	for i := range gpus {
		out.Chunks = append(out.Chunks, Chunk{GPU: i, Forward: 1, Input: 1, Weight: 1, ToWeight: 1})
	}
	if vee {
		for i := range gpus {
			out.Chunks = append(out.Chunks, out.Chunks[gpus-1-i])
		}
	}
	return out
}

// With 1F1B's memory the step has no bubble but the way to the last GPU, as ZB-H1 (2401.10241).
func TestOneFOneBsMemory(t *testing.T) {
	for _, gpus := range []int{1, 2, 4, 8} {
		for _, vee := range []bool{false, true} {
			problem, chunks := even(gpus, 16, vee, int64(gpus)), 1
			if vee {
				problem.Caps, chunks = slices.Repeat([]int64{int64(2 * gpus)}, gpus), 2
			}
			solution := fixtures.Must(Solve(t.Context(), problem, Settings{}))(t)
			if want := int64(3*16*chunks + gpus - 1); solution.Length != want || !solution.Complete {
				t.Errorf("%d GPUs, V %v: %d, complete %v; want %d", gpus, vee, solution.Length, solution.Complete, want)
			}
		}
	}
}

// The policies are found with few micro-batches and serve any number: each further one adds the same.
func TestManyMicroBatches(t *testing.T) {
	var tried, lengths []int
	for _, batches := range []int{64, 128, 192} {
		solution := fixtures.Must(Solve(t.Context(), even(4, batches, true, 5), Settings{Effort: 100_000}))(t)
		tried, lengths = append(tried, solution.Tried), append(lengths, int(solution.Length))
	}
	if tried[0] != tried[2] || lengths[2]-lengths[1] != lengths[1]-lengths[0] {
		t.Errorf("tried %v, lengths %v", tried, lengths)
	}
}

func TestSmallestCaps(t *testing.T) {
	problem := even(3, 4, true, 1)
	_, err := Solve(t.Context(), problem, Settings{})
	var small *SmallError
	if !errors.As(err, &small) || small.GPU != 0 || !slices.Equal(small.Least, []int64{2, 2, 2}) {
		t.Fatalf("%v", err)
	}
	problem.Caps = small.Least
	if _, err := Solve(t.Context(), problem, Settings{}); err != nil {
		t.Errorf("with the smallest caps: %v", err)
	}
}

func TestRefusedNumbers(t *testing.T) {
	for name, change := range map[string]func(*Problem){
		"no time":     func(problem *Problem) { problem.Chunks[1].Forward = 0 },
		"less than 0": func(problem *Problem) { problem.Chunks[1].Between = -1 },
		"no such GPU": func(problem *Problem) { problem.Chunks[1].GPU = 3 },
		"too long":    func(problem *Problem) { problem.Chunks[1].Input = largest },
		"none":        func(problem *Problem) { problem.MicroBatches = 0 },
	} {
		problem := even(3, 4, false, 3)
		change(&problem)
		if _, err := Solve(t.Context(), problem, Settings{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A start that is better than what trials find remains, and one that does not fit is left out.
func TestStarts(t *testing.T) {
	problem := even(2, 3, false, 2)
	solution := fixtures.Must(Solve(t.Context(), problem, Settings{}))(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	broken := Order{solution.Order[0][:1], solution.Order[1]}
	again, err := Solve(ended, problem, Settings{Effort: 1, Starts: []Order{broken, solution.Order}})
	if err != nil || again.Length > solution.Length {
		t.Errorf("length %d, error %v; the start takes %d", again.Length, err, solution.Length)
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, used := range []int64{16, 9, 6} {
		b.Run(fmt.Sprintf("V of 8 GPUs, 16 micro-batches, %d of 16", used), func(b *testing.B) {
			for b.Loop() {
				if _, err := Solve(b.Context(), even(8, 16, true, used), Settings{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

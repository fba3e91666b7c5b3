package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// timedPlan is the part of a plan for a script that adds up a step, written from
// docs/formats/plan-stages.md.
type timedPlan struct {
	Workload struct {
		Mode         string
		Strategy     string
		Schedule     string
		MicroBatches int   `json:"micro_batches"`
		Seq          int64 `json:"seq"`
		NewTokens    int   `json:"new_tokens"`
	}
	Stages      []timedStage
	StepSeconds float64 `json:"step_seconds"`
}

type timedStage struct {
	Device any
	contractTimes
}

// TestStagesAddUp: a step is the sum of the times of the plan's stages. The test uses only the file
// and the schedules.
func TestStagesAddUp(t *testing.T) {
	for _, args := range []string{
		"gpt2 --gpus 4 --mode train --strategy pipeline --schedule gpipe --micro-batches 6 --batch 6",
		"gpt2 --gpus 4 --mode train --strategy pipeline --schedule 1f1b --micro-batches 9 --batch 9 --objective time",
		"qwen2.5-3b --gpus 3 --mode train --strategy pipeline --schedule 1f1b --micro-batches 4 --batch 4 --recompute full",
		"gpt2 --gpus 3 --mode train --strategy pipeline --schedule interleaved --micro-batches 6 --batch 6",
		"qwen2.5-3b --gpus 2 --mode train --strategy pipeline --schedule interleaved --virtual-stages 3 --micro-batches 8 --batch 8",
		"gpt2 --gpus 4 --strategy pipeline --schedule gpipe --micro-batches 5 --batch 5",
		"gpt2 --gpus 2 --strategy pipeline --schedule interleaved --micro-batches 4 --batch 4",
		"gpt2 --gpus 4 --mode train --batch 4 --micro-batches 2",
		"qwen2.5-3b --gpus 4 --mode train --batch 4 --seq 4096",
		"qwen2.5-3b --gpus 3 --new-tokens 100 --batch 2",
		"gpt2 --gpus 3",
		"qwen2.5-3b --gpus 3GiB,2GiB --seq 64 --offload cpu --new-tokens 5",
	} {
		t.Run(args, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), append(append([]string{"plan"}, strings.Fields(args)...), "--json"), &out, &errs); code != 0 {
				t.Fatal(code, errs.String())
			}
			var p timedPlan
			if err := json.Unmarshal(out.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if got := p.step(); math.Abs(got-p.StepSeconds) > 1e-9*p.StepSeconds || len(p.Stages) < 2 {
				t.Errorf("the %d stages add up to %v s, the plan says %v", len(p.Stages), got, p.StepSeconds)
			}
		})
	}
}

func (p *timedPlan) step() float64 {
	update := map[any]float64{}
	for i := range p.Stages {
		update[p.Stages[i].Device] += p.Stages[i].Update
	}
	if p.Workload.Strategy != "pipeline" {
		slowest := 0.
		for _, u := range update {
			slowest = max(slowest, u)
		}
		return p.inTurn() + slowest
	}
	end, last := p.overlapped(), 0.
	for d := range update {
		last = max(last, end[d]+update[d])
	}
	for i := range p.Stages {
		last += float64(p.Workload.NewTokens) * p.Stages[i].AloneToken
	}
	return last
}

// inTurn returns the step of a device map: one stage after the other, one host for all.
func (p *timedPlan) inTurn() float64 {
	var host, device, issue, work float64
	pass := func(wait, length, issues, alone float64) {
		device = max(device+wait+length, host+alone)
		host += issues
		issue, work = issue+issues, work+wait+length
	}
	n := len(p.Stages)
	for i := range n {
		wait := 0.
		if i > 0 {
			wait = p.Stages[i-1].Send
		}
		pass(wait, p.Stages[i].Forward, p.Stages[i].IssueForward, p.Stages[i].AloneForward)
	}
	for i := n - 1; i >= 0 && p.Workload.Mode == "train"; i-- {
		wait := 0.
		if i+1 < n {
			wait = p.Stages[i+1].SendBack
		}
		pass(wait, p.Stages[i].Backward, p.Stages[i].IssueBackward, p.Stages[i].AloneBackward)
	}
	step := device + float64(max(1, p.Workload.MicroBatches)-1)*max(issue, work)
	host, device = 0, 0
	for i := range n {
		wait := 0.
		if i > 0 {
			wait = p.Stages[i-1].Send / float64(p.Workload.Seq)
		}
		pass(wait, p.Stages[i].Token, p.Stages[i].IssueToken, p.Stages[i].AloneToken)
	}
	return step + float64(p.Workload.NewTokens)*device
}

// done is a pass of a micro-batch through a stage.
type done struct {
	stage, batch int
	back         bool
}

// overlapped returns the end time of each device of a pipeline.
func (p *timedPlan) overlapped() map[any]float64 {
	var ranks []any
	stagesOf := map[any][]int{}
	for i := range p.Stages {
		if len(stagesOf[p.Stages[i].Device]) == 0 {
			ranks = append(ranks, p.Stages[i].Device)
		}
		stagesOf[p.Stages[i].Device] = append(stagesOf[p.Stages[i].Device], i)
	}
	if p.Workload.Schedule == "interleaved" {
		return p.lockStep(ranks, stagesOf)
	}
	orders := map[any][]done{}
	for r, d := range ranks {
		ahead := p.Workload.MicroBatches // forwards before the first backward
		if p.Workload.Schedule == "1f1b" {
			ahead = min(ahead, len(ranks)-r)
		}
		for i, b := 0, 0; b < p.Workload.MicroBatches; {
			if i < p.Workload.MicroBatches && i-b < ahead {
				orders[d] = append(orders[d], done{r, i, false})
				i++
				continue
			}
			orders[d] = append(orders[d], done{r, b, true})
			b++
		}
	}
	ended := map[done]float64{}
	end, host := map[any]float64{}, map[any]float64{}
	for left := true; left; {
		left = false
		for _, d := range ranks {
			if len(orders[d]) == 0 {
				continue
			}
			left = true
			a := orders[d][0]
			ready, ok := p.input(a, ended)
			if !ok {
				continue
			}
			orders[d] = orders[d][1:]
			length, issue := p.length(a)
			if a.back && p.Workload.Mode != "train" {
				continue
			}
			host[d] += issue
			end[d] = max(max(end[d], ready)+length, host[d])
			ended[a] = end[d]
		}
	}
	return end
}

func (p *timedPlan) length(a done) (length, issue float64) {
	if s := &p.Stages[a.stage]; !a.back {
		return s.Forward, s.IssueForward
	}
	return p.Stages[a.stage].Backward, p.Stages[a.stage].IssueBackward
}

func (p *timedPlan) input(a done, ended map[done]float64) (float64, bool) {
	from, wait := done{a.stage - 1, a.batch, false}, 0.
	switch {
	case a.back && p.Workload.Mode != "train":
		return 0, true
	case a.back && a.stage+1 == len(p.Stages):
		from = done{a.stage, a.batch, false}
	case a.back:
		from = done{a.stage + 1, a.batch, true}
		wait = p.Stages[a.stage+1].SendBack
	case a.stage == 0:
		return 0, true
	default:
		wait = p.Stages[a.stage-1].Send
	}
	t, ok := ended[from]
	return t + wait, ok
}

// lockStep runs torch's table of an interleaved schedule. In each step a rank makes one pass, and
// then waits until its messages and its neighbours' are sent.
func (p *timedPlan) lockStep(ranks []any, stagesOf map[any][]int) map[any]float64 {
	n, chunks, m := len(ranks), len(p.Stages)/len(ranks), p.Workload.MicroBatches
	round := m / max(1, m/n) // micro-batches of a chunk before the next chunk
	table := make([][]*done, n)
	longest := 0
	for r, d := range ranks {
		first := min((chunks-1)*round+2*(n-1-r), chunks*m)
		forward, backward := 0, 0
		pass := func(back bool) {
			op := &forward
			if back {
				op = &backward
			}
			chunk := *op / round % chunks
			if back {
				chunk = chunks - 1 - chunk
			}
			table[r] = append(table[r], &done{stagesOf[d][chunk], *op, back})
			*op++
		}
		wait := func(steps int) { table[r] = append(table[r], make([]*done, max(0, steps))...) }
		wait(r)
		for range first {
			pass(false)
		}
		wait(chunks*n + 2*(n-1-r) - first - r)
		for forward < chunks*m {
			pass(false)
			pass(true)
		}
		for backward < chunks*m {
			wait(1)
			pass(true)
		}
		longest = max(longest, len(table[r]))
	}
	at, host := make([]float64, n), make([]float64, n)
	rankOf := func(stage int) int { return stage % n }
	for step := range longest {
		for r := range n {
			if step >= len(table[r]) || table[r][step] == nil || table[r][step].back && p.Workload.Mode != "train" {
				continue
			}
			length, issue := p.length(*table[r][step])
			host[r] += issue
			at[r] = max(at[r]+length, host[r])
		}
		made := append([]float64(nil), at...)
		for r := range n {
			if step >= len(table[r]) || table[r][step] == nil {
				continue
			}
			a := table[r][step]
			to, send := a.stage+1, p.Stages[a.stage].Send
			if a.back {
				to, send = a.stage-1, p.Stages[a.stage].SendBack
			}
			if to < 0 || to == len(p.Stages) || a.back && p.Workload.Mode != "train" {
				continue
			}
			q := rankOf(to)
			at[r], at[q] = max(at[r], max(made[r], made[q])+send), max(at[q], max(made[r], made[q])+send)
		}
	}
	end := map[any]float64{}
	for r, d := range ranks {
		end[d] = at[r]
	}
	return end
}

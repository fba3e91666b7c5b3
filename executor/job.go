package executor

import "github.com/devmap-dev/devmap/modelgraph"

// vocab returns how many token ids the model knows, 0 if it embeds none.
func (job *Job) vocab() int64 {
	for i := range job.Graph.Layers {
		layer := &job.Graph.Layers[i]
		if op, is := layer.Op.(modelgraph.Embedding); is && op.Index == modelgraph.TokenIndex && layer.Stream.Kind == modelgraph.Text {
			return op.Vocab
		}
	}
	return 0
}

// head returns the model's last unit that runs kernels, which makes the result, or -1 if nothing
// runs.
func (job *Job) head() int {
	for unit := len(job.Recipe.Units) - 1; unit >= 0; unit-- {
		if !job.Recipe.Units[unit].Passes && len(job.Recipe.Units[unit].Code.Forward.Kernels) > 0 {
			return unit
		}
	}
	return -1
}

// reader returns the unit that reads the hidden states: the head, or the projection before it that
// belongs to it (BertForMaskedLM's transform).
func (job *Job) reader() int {
	for unit := range job.Recipe.Units {
		for _, layer := range job.Graph.Units[unit].Exec {
			if _, is := job.Graph.Layers[layer].Op.(modelgraph.Linear); is && !job.Recipe.Units[unit].Passes {
				return unit
			}
		}
	}
	return job.head()
}

// headOp returns the op of the model's head, if it has one.
func (job *Job) headOp() (op modelgraph.Head, known bool) {
	unit := job.head()
	if unit < 0 {
		return op, false
	}
	for _, layer := range job.Graph.Units[unit].Exec {
		if op, is := job.Graph.Layers[layer].Op.(modelgraph.Head); is {
			return op, true
		}
	}
	return op, false
}

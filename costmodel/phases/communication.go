package phases

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel/internal/forward"
)

// communication is the time of a step's messages: what compute hides, and what it waits for. Under
// Ulysses attention's tokens and heads change places: (u-1)/u of four tensors a block leave a GPU,
// and attention waits. Keys and values go round a ring while attention computes, and shards are
// gathered a block ahead.
func (run *deployment) communication() (hidden, waited float64) {
	rate := run.gpu.LinkBytesPerSecond
	if rate == 0 {
		return 0, 0
	}
	call, graph, work := run.call(), run.denoiser.Graph, run.work
	tokens := float64(cmp.Or(call.Tokens, run.latents()/(32*4*width(graph)*work.Batch))+call.Text) / float64(call.Split)
	tensor := float64(call.Batch) * tokens * float64(run.heads()*headWidth(graph)*width(graph)) * float64(len(blocksOf(graph)))
	waited = 4 * tensor * float64(work.Ulysses-1) / float64(work.Ulysses) / rate
	hidden = 2 * tensor * float64(work.Ring-1) / rate
	if degree := float64(work.FullyShardDegree); degree > 1 {
		hidden = max(hidden, float64(forward.Bytes(graph))*(degree-1)/degree/rate)
	}
	return hidden, waited
}

package phases

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel/internal/forward"
)

// communication is the time of a step's messages: hidden by compute, and waited for. Ulysses
// exchanges tokens and heads: (u-1)/u of four tensors a block leave a GPU, and attention waits. A
// ring's keys and values move while attention computes; shards are gathered a block ahead.
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

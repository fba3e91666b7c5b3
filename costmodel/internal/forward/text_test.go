package forward

import (
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestMeasuredText: as [TestMeasured], of text encoders, as a share of the
// whole with their weights: activations are a few percent of these.
func TestMeasuredText(t *testing.T) {
	const t5 = `{"architectures":["T5EncoderModel"],"model_type":"t5","d_model":4096,"d_ff":10240,"d_kv":64,"num_heads":64,"num_layers":24,"vocab_size":32128,"feed_forward_proj":"gated-gelu","torch_dtype":"bfloat16"}`
	const umt5 = `{"architectures":["UMT5EncoderModel"],"model_type":"umt5","d_model":4096,"d_ff":10240,"d_kv":64,"num_heads":64,"num_layers":24,"vocab_size":256384,"feed_forward_proj":"gated-gelu","torch_dtype":"bfloat16"}`
	const llama = `{"architectures":["LlamaModel"],"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128320,"torch_dtype":"bfloat16"}`
	for _, c := range []struct {
		config string
		call   Call
		want   int64
	}{
		{t5, Call{Batch: 1, Text: 512}, 243307008},
		{t5, Call{Batch: 2, Text: 256}, 142643712},
		{umt5, Call{Batch: 1, Text: 512}, 243311104},
		{umt5, Call{Batch: 1, Text: 226}, 63122944},
		{llama, Call{Batch: 1, Text: 351}, 174994432},
	} {
		graph := fixtures.Must(hf.FromConfig("config.json", []byte(c.config)))(t)
		cost := fixtures.Must(Of(graph, c.call, 2))(t)
		off := float64(cost.PeakBytes-c.want) / float64(Bytes(graph)+c.want)
		t.Logf("%s %+v: %d, measured %d (%+.3f %% of the peak)", graph.Class, c.call, cost.PeakBytes, c.want, 100*off)
		if off > 0.003 || off < -0.003 {
			t.Errorf("%s %+v: %d, measured %d (%+.3f %% of the peak)", graph.Class, c.call, cost.PeakBytes, c.want, 100*off)
		}
	}
}

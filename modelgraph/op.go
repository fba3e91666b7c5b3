package modelgraph

// Op is what a layer computes, with its dimensions: one of the types below, by
// value. Dimensions are element counts; zero means "has none".
type Op interface {
	kind() string // its name in model.json
}

// Embedding looks rows up in a table [Vocab, Dim].
type Embedding struct {
	Vocab int64 `json:"vocab"`
	Dim   int64 `json:"dim"`
	// Scaled: the rows are multiplied by a constant (Gemma).
	Scaled bool `json:"scaled,omitzero"`
	// Factor is that constant. It is first rounded to the type of the rows (modeling_gemma.py:
	// GemmaTextScaledWordEmbedding). 0: not known.
	Factor float64 `json:"factor,omitzero"`
	// Index is the meaning of a row.
	Index string `json:"index,omitzero"`
	// Padding is 1 + the row that no gradient reaches (padding_idx of nn.Embedding). 0: none.
	Padding int64 `json:"padding,omitzero"`
	// Dropout: in training the rows pass a dropout, which keeps a mask.
	Dropout bool `json:"dropout,omitzero"`
	// Persists: a variable of the model's forward holds the rows, those of one sequence if they are
	// positions (modeling_gpt2.py: position_embeds).
	Persists bool `json:"persists,omitzero"`
}

// The meanings of a row of an [Embedding].
const (
	TokenIndex    = ""           // a token of the vocabulary
	PositionIndex = "position"   // a place in the sequence, from 0 (wpe in modeling_gpt2.py, BertEmbeddings in modeling_bert.py)
	TypeIndex     = "token-type" // which of two texts a token is of, 0 by default (BertEmbeddings)
)

// NormStyle distinguishes normalisations that keep different tensors alive.
type NormStyle string

// The styles of [Norm].
const (
	RMSNorm      NormStyle = "rms"       // Llama: fp32 inside, weight × x
	GemmaRMSNorm NormStyle = "gemma-rms" // (1 + weight) × x in fp32
	LayerNorm    NormStyle = "layer"     // one kernel, weight and bias
)

// Norm normalises the last dimension.
type Norm struct {
	Dim   int64     `json:"dim"`
	Style NormStyle `json:"style,omitzero"` // RMSNorm if empty
	// Post: the result is only added to the residual stream (Gemma 2).
	Post bool `json:"post,omitzero"`
	// Epsilon is added to the mean square, or the variance, before its root
	// (rms_norm_eps, layer_norm_eps, layer_norm_epsilon).
	Epsilon float64 `json:"epsilon,omitzero"`
	// FP32: the weight multiplies in fp32 before the cast (modeling_olmo2.py). For a LayerNorm, the
	// kernel runs in fp32 (modeling_olmo.py).
	FP32 bool `json:"fp32,omitzero"`
	// Eager: a LayerNorm of Python operations in fp32 (modeling_cohere.py).
	Eager bool `json:"eager,omitzero"`
	// OwnInput: the input in its own type multiplies 1/σ, so that it is kept in
	// addition to its fp32 copy (modeling_t5.py, T5LayerNorm).
	OwnInput bool `json:"own_input,omitzero"`
	// Dropout is as in [Embedding].
	Dropout bool `json:"dropout,omitzero"`
	// Persists: a variable of the model's forward holds the result (modeling_modernbert.py:
	// mask_kwargs).
	Persists bool `json:"persists,omitzero"`
}

// Attention is self-attention, or attention to an encoder's output.
type Attention struct {
	Dim     int64 `json:"dim"`
	Heads   int64 `json:"heads"`
	KVHeads int64 `json:"kv_heads"`
	HeadDim int64 `json:"head_dim"`
	// InDim is the width of the input of q, k and v if it differs from Dim (Zamba2: the hidden
	// state next to the embeddings).
	InDim int64 `json:"in_dim,omitzero"`
	// ValueDim is a head's width in V if it differs from HeadDim.
	ValueDim int64 `json:"value_dim,omitzero"`
	// QRank, KVRank and RopeDim are the latent ranks and the rotary part of a head of multi-head
	// latent attention (DeepSeek). With QRank 0 q has no latent.
	QRank   int64 `json:"q_rank,omitzero"`
	KVRank  int64 `json:"kv_rank,omitzero"`
	RopeDim int64 `json:"rope_dim,omitzero"`
	// Window is the number of tokens a query sees, its own and those before
	// it; 0: all.
	Window int64 `json:"window,omitzero"`
	// Scale multiplies the scores before cap, mask and softmax; 0:
	// HeadDim^-1/2. (Gemma 2 and 3: query_pre_attn_scalar^-1/2. GPT-2: 1
	// without scale_attn_weights, and divided by the block's number, from 1,
	// under scale_attn_by_inverse_layer_idx.)
	Scale float64 `json:"scale,omitzero"`
	// Rope: positions rotate q and k, as Rotation says.
	Rope     bool     `json:"rope,omitzero"`
	Rotation Rotation `json:"rotation,omitzero"`
	// RopeRows: the cosines and sines have a row a sequence, not one for all
	// (Qwen2.5-VL's positions in three dimensions).
	RopeRows bool `json:"rope_rows,omitzero"`
	// Packed: all images lie in one row of tokens, which is rotated in fp32. It is cut into images,
	// or into windows of Window tokens, each one call of the kernel. The outputs are joined
	// (Qwen2.5-VL's tower).
	Packed bool `json:"packed,omitzero"`
	// ImageMask: with images, a mask lets their tokens see each other (Gemma 3,
	// PaliGemma).
	ImageMask bool `json:"image_mask,omitzero"`
	// QKNorm is the style of the norms on q and k; empty: none.
	QKNorm NormStyle `json:"qk_norm,omitzero"`
	// QKNormWhole: the norms cover all heads at once (InternViT), not each head.
	QKNormWhole bool `json:"qk_norm_whole,omitzero"`
	// QKEpsilon is the epsilon of these norms, as in [Norm].
	QKEpsilon float64 `json:"qk_epsilon,omitzero"`
	// ValueNorm: v passes a norm too, in fp32 and without a weight (Gemma 4).
	ValueNorm bool `json:"value_norm,omitzero"`
	// Fused: one projection makes q, k and v, which are views of it.
	Fused bool `json:"fused,omitzero"`
	// Transposed: the matrices are stored [in, out] (pytorch_utils.py: Conv1D),
	// not [out, in] as nn.Linear has them.
	Transposed bool `json:"transposed,omitzero"`
	// Cross: keys and values come from an encoder's output.
	Cross bool `json:"cross,omitzero"`
	// Joint: a second stream's tokens have projections of their own and attend with the first's
	// (Esser et al. 2024, §4: MM-DiT). Or both lie in one row, and another layer projects the
	// result (FLUX's single blocks).
	Joint bool `json:"joint,omitzero"`
	// Bidirectional: no causal mask, and no KV cache.
	Bidirectional bool `json:"bidirectional,omitzero"`
	// Uncached: the mask is causal, and the forward has no KV cache (CLIP's text model, GPT-1).
	Uncached bool `json:"uncached,omitzero"`
	// Eager: a bias on the scores (T5, BLOOM's ALiBi) or a soft cap forces
	// the score matrix into memory.
	Eager bool `json:"eager,omitzero"`
	// ScoreBias names that bias: "alibi" (BLOOM), "relative" (T5), or none if empty. The bias
	// "decomposed" (SAM) is a number a row and one a column of an image, for every head. It does
	// not make attention Eager: the kernel takes it as a mask. So are "windows" (Swin), of the
	// positions in a window, and "shifted", which is that with a mask of each window. With "global" (Longformer),
	// some tokens see all and are seen by all, in addition to a window. They have queries, keys and
	// values of their own.
	ScoreBias string `json:"score_bias,omitzero"`
	// BiasMade: the layer computes that bias, which later layers of its stack share.
	BiasMade bool `json:"bias_made,omitzero"`
	// BiasOwn: every layer computes its own (modeling_umt5.py).
	BiasOwn bool `json:"bias_own,omitzero"`
	// BiasCopied: SDPA gets a contiguous copy of the bias, which fused kernels take (Transformers
	// 5.20, sdpa_attention.py).
	BiasCopied bool `json:"bias_copied,omitzero"`
	// SoftCap: the scores pass through a scaled tanh if the kernel has one: eager and flash, not
	// SDPA (Gemma 2).
	SoftCap bool `json:"soft_cap,omitzero"`
	// ScoreCap is its cap: score becomes cap × tanh(score / cap). 0: none is applied (Gemma 3 reads
	// one and does not apply it: modeling_gemma3.py, Gemma3Attention).
	ScoreCap float64 `json:"score_cap,omitzero"`
	// Gated: q's projection also makes a gate, as wide as q, whose sigmoid scales the output of the
	// heads (Qwen3-Next).
	Gated bool `json:"gated,omitzero"`
	// SharedKV: keys and values are those of an earlier layer, whose cache holds
	// them (Gemma 3n).
	SharedKV bool `json:"shared_kv,omitzero"`
	// IndexHeads, IndexDim and IndexTopK are an indexer's, which scores every key for every query,
	// without gradient. A query sees the IndexTopK best keys (DeepSeek-V3.2). The indexer's
	// matrices are the layer's too.
	IndexHeads int64 `json:"index_heads,omitzero"`
	IndexDim   int64 `json:"index_dim,omitzero"`
	IndexTopK  int64 `json:"index_top_k,omitzero"`
	// LayerScale: the result is multiplied by a learned vector before it
	// joins the residual stream (InternViT), which keeps the result alive.
	LayerScale bool `json:"layer_scale,omitzero"`
	// Turning is the width of the rotated part of a head, if torch.cat joins it with the rest. That
	// lays q out by heads, and so the kernel's output, which is copied.
	Turning int64 `json:"turning,omitzero"`
	// FP32Rotation: q and k are rotated in fp32. CastRotation: they are cast to it first, and
	// halves are stacked (modeling_cohere.py); else cos and sin are fp32 (modeling_olmo2.py).
	FP32Rotation bool `json:"fp32_rotation,omitzero"`
	CastRotation bool `json:"cast_rotation,omitzero"`
	// QKNormFP32 is FP32 of [Norm], for the norms on q and k.
	QKNormFP32 bool `json:"qk_norm_fp32,omitzero"`
	// Unfused: only the math kernel of SDPA takes the inputs. There are fewer KV heads without
	// enable_gqa (modeling_falcon.py), or a bias that is laid out by heads last (modeling_t5.py).
	Unfused bool `json:"unfused,omitzero"`
	// FP32Scores: q and k are cast to fp32 before their product (modeling_gptj.py).
	FP32Scores bool `json:"fp32_scores,omitzero"`
	// OwnScores: softmax runs in the type of the scores, with a column for a head's sink
	// (modeling_gpt_oss.py). Its result multiplies v.
	OwnScores bool `json:"own_scores,omitzero"`
	// Dropout: in training the result passes a dropout, which keeps a mask. InnerDropout: softmax's
	// result in memory passes one too (modeling_deberta_v2.py).
	Dropout      bool `json:"dropout,omitzero"`
	InnerDropout bool `json:"inner_dropout,omitzero"`
	// ExtraScores is how many more tensors of the scores' size variables hold. The block before
	// returns its weights (modeling_mpt.py). The product before its mask is held
	// (modeling_bloom.py). Unreturned: the function returns no weights (modeling_deberta_v2.py).
	ExtraScores int64 `json:"extra_scores,omitzero"`
	Unreturned  bool  `json:"unreturned,omitzero"`
}

// MLP is a feed-forward network Dim → Hidden → Dim.
type MLP struct {
	Dim    int64 `json:"dim"`
	Hidden int64 `json:"hidden"`
	Gated  bool  `json:"gated,omitzero"` // two up projections, one through the activation
	Fused  bool  `json:"fused,omitzero"` // both in one matrix
	// Activation is the framework's name: silu, gelu, gelu_new, relu, …
	// (activations.py: ACT2FN).
	Activation string `json:"activation,omitzero"`
	// Transposed is as in [Attention].
	Transposed bool `json:"transposed,omitzero"`
	// LayerScale is as in [Attention].
	LayerScale bool `json:"layer_scale,omitzero"`
	// Dropout is as in [Attention].
	Dropout bool `json:"dropout,omitzero"`
	// InnerDropout: the input of the last linear layer has passed one too (modeling_t5.py).
	InnerDropout bool `json:"inner_dropout,omitzero"`
	// Extra is how many more tensors of its input's size the block's variables hold while it runs
	// than in a llama (modeling_stablelm.py, StableLmDecoderLayer.forward).
	Extra int64 `json:"extra,omitzero"`
	// Inline: the block's own forward runs it, and has released its input's variable by then
	// (modeling_opt.py, OPTDecoderLayer.forward).
	Inline bool `json:"inline,omitzero"`
}

// MoE is a mixture of expert MLPs after a router.
type MoE struct {
	Dim     int64 `json:"dim"`
	Hidden  int64 `json:"hidden"` // of one expert
	Experts int64 `json:"experts"`
	TopK    int64 `json:"top_k"`
	// SharedHidden is the width of the experts that every token passes.
	SharedHidden int64 `json:"shared_hidden,omitzero"`
	// FP32Routing: the router runs in fp32 (DeepSeek-V3).
	FP32Routing bool `json:"fp32_routing,omitzero"`
	// CastWeights: the router's weights are cast to the type of the tokens. Else they are fp32
	// (Qwen3MoeTopKRouter in modeling_qwen3_moe.py, modeling_mixtral.py).
	CastWeights bool `json:"cast_weights,omitzero"`
	// Clamped: gate and up have biases and are clamped (modeling_gpt_oss.py).
	Clamped bool `json:"clamped,omitzero"`
	// Dense: every expert computes every token, scaled by its share before (modeling_llama4.py).
	Dense bool `json:"dense,omitzero"`
	// Activation is the framework's name.
	Activation string `json:"activation,omitzero"`
}

// Head projects to the vocabulary (or to classes), for the loss.
type Head struct {
	Dim   int64 `json:"dim"`
	Vocab int64 `json:"vocab"`
	// SoftCap: logits pass through a scaled tanh (Gemma 2).
	SoftCap bool `json:"soft_cap,omitzero"`
	// LogitCap is its cap: a logit becomes cap × tanh(logit / cap). 0: not
	// known.
	LogitCap float64 `json:"logit_cap,omitzero"`
	// Pooled: one position a sequence, not every token (classifiers).
	Pooled bool `json:"pooled,omitzero"`
	// Scaled: the logits are multiplied, divided or shifted by a constant, which makes
	// another tensor (modeling_granite.py).
	Scaled bool `json:"scaled,omitzero"`
	// OwnType: the loss reads the logits in their own type, not in fp32
	// (modeling_bert.py: CrossEntropyLoss).
	OwnType bool `json:"own_type,omitzero"`
	// Body is the width of the body's output, if a variable holds it while the head runs
	// (sequence_outputs in modeling_albert.py). 0: Dim, with OwnType.
	Body int64 `json:"body,omitzero"`
	// FP32: the model returns the logits in fp32 (modeling_mamba.py).
	FP32 bool `json:"fp32,omitzero"`
}

// Linear is one projection outside a block: a projector, a pooler.
type Linear struct {
	In         int64  `json:"in"`
	Out        int64  `json:"out"`
	Activation string `json:"activation,omitzero"` // applied to the output
	Pooled     bool   `json:"pooled,omitzero"`     // one position a sequence
	// Returned: the model returns the result in addition to its own output (the features of images,
	// image_hidden_states).
	Returned bool `json:"returned,omitzero"`
	// Persists: a variable of the model's forward holds the result (modeling_electra.py).
	Persists bool `json:"persists,omitzero"`
	// LayerScale: a learned vector multiplies the result, which backward keeps for it (ConvNeXt).
	LayerScale bool `json:"layer_scale,omitzero"`
	// Extra is how many more tensors of its input's size the block's variables hold while it runs.
	Extra int64 `json:"extra,omitzero"`
}

// Conv is a convolution; its output has Out channels a token.
type Conv struct {
	In     int64 `json:"in"`
	Out    int64 `json:"out"`
	Kernel int64 `json:"kernel"` // product of the kernel's sides
	// Stride is positions of the input per token out (the product of the strides), if no position
	// is read twice (patches). 0 means 1.
	Stride int64 `json:"stride,omitzero"`
	// TokenRatio is tokens out per token of the layer's stream. Whisper's first convolution runs at
	// twice the rate. 0 means 1.
	TokenRatio int64  `json:"token_ratio,omitzero"`
	Activation string `json:"activation,omitzero"`
}

// StateSpace is a recurrent mixer: a selective state-space model (Mamba), or, with Heads, one that
// is computed in chunks. The second kind is Mamba-2 (arXiv 2405.21060) and the linear attentions of
// its form: gated delta rule, lightning attention.
type StateSpace struct {
	Dim    int64 `json:"dim"`
	Inner  int64 `json:"inner"`
	State  int64 `json:"state"`
	Kernel int64 `json:"kernel"`
	DtRank int64 `json:"dt_rank"`
	// Heads have a state [Inner/Heads, State] each. 0: every channel of Inner has one of State
	// (Mamba). One head for each channel and no State is a gated convolution (LFM2).
	Heads int64 `json:"heads,omitzero"`
	// Groups have keys and queries (B and C) of State each.
	Groups int64 `json:"groups,omitzero"`
	// Chunk is the number of tokens whose products are computed at once.
	Chunk int64 `json:"chunk,omitzero"`
	// Delta: the gated delta rule (modeling_qwen3_next.py), not Mamba-2.
	Delta bool `json:"delta,omitzero"`
	// Contracted: Mamba-2's own code sums its products by einsum (Transformers 5.18), so that no
	// product of each pair of tokens and state is in memory.
	Contracted bool `json:"contracted,omitzero"`
	// FP32Residual: the residual stream is fp32 (modeling_mamba.py: residual_in_fp32).
	FP32Residual bool `json:"fp32_residual,omitzero"`
}

// Rotary computes the cosines and sines of rotary positions, HeadDim wide.
type Rotary struct {
	HeadDim int64 `json:"head_dim"`
	// Rows is as RopeRows in [Attention].
	Rows bool `json:"rows,omitzero"`
	// Packed: a row for each token of all images, kept in fp32 ([Attention]).
	Packed bool `json:"packed,omitzero"`
}

// Parameter is a bare parameter that other layers read: a class token, a
// table of positions, a vector that scales a residual.
type Parameter struct{}

// Opaque is anything whose structure is not known: only its tensors and
// declared costs count.
type Opaque struct{}

func (Embedding) kind() string  { return "embedding" }
func (Norm) kind() string       { return "norm" }
func (Attention) kind() string  { return "attention" }
func (MLP) kind() string        { return "mlp" }
func (MoE) kind() string        { return "moe" }
func (Head) kind() string       { return "head" }
func (Linear) kind() string     { return "linear" }
func (Conv) kind() string       { return "conv" }
func (StateSpace) kind() string { return "state-space" }
func (Rotary) kind() string     { return "rotary" }
func (Parameter) kind() string  { return "parameter" }
func (Opaque) kind() string     { return "opaque" }

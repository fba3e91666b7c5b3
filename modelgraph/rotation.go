package modelgraph

// Rotation is how positions turn q and k (Su et al. 2021, arXiv 2104.09864):
// dimension i of the first half of Width turns with dimension i of the second
// (rotate_half of Transformers' models), by position × [Attention.Frequencies].
// Fields that a type does not use are 0.
type Rotation struct {
	// Type is rope_type as Transformers names it (modeling_rope_utils.py:
	// ROPE_INIT_FUNCTIONS): empty for "default", "linear", "dynamic", "llama3",
	// "yarn", or another that is kept by its name alone ("longrope").
	Type string `json:"type,omitzero"`
	// Base is rope_theta; 0: 10,000.
	Base float64 `json:"base,omitzero"`
	// Width is the number of dimensions of a head that turn, the first ones;
	// 0: all (partial_rotary_factor).
	Width int64 `json:"width,omitzero"`
	// Factor is how many times as many positions as trained there are to be.
	Factor float64 `json:"factor,omitzero"`
	// Trained is the number of positions before that
	// (original_max_position_embeddings; of dynamic max_position_embeddings).
	Trained int64 `json:"trained,omitzero"`
	// Slow and Fast are turns over the trained positions: dimensions with
	// fewer than Slow are stretched by Factor, those with more than Fast are
	// left (llama3: low_freq_factor, high_freq_factor; yarn: beta_slow,
	// beta_fast, which are 1 and 32 where they are 0).
	Slow float64 `json:"slow,omitzero"`
	Fast float64 `json:"fast,omitzero"`
	// AttentionFactor multiplies cosines and sines; 0: 1, and of yarn
	// 0.1 ln(Factor) + 1.
	AttentionFactor float64 `json:"attention_factor,omitzero"`
	// Untruncated: of yarn, Slow and Fast bound dimensions that may be fractions
	// (truncate: false, gpt-oss).
	Untruncated bool `json:"untruncated,omitzero"`
}

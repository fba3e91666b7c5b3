package modelgraph

// Rotation is how positions rotate q and k (Su et al. 2021, arXiv 2104.09864). Dimension i of the
// first half of Width is rotated with dimension i of the second (rotate_half of Transformers'
// models), by position × [Attention.Frequencies]. Fields that a type does not use are 0.
type Rotation struct {
	// Type is Transformers' rope_type (modeling_rope_utils.py: ROPE_INIT_FUNCTIONS), empty for
	// "default". It is "linear", "dynamic", "llama3", "yarn", or a name that is kept without its
	// rule ("longrope").
	Type string `json:"type,omitzero"`
	// Base is rope_theta; 0: 10,000.
	Base float64 `json:"base,omitzero"`
	// Width is the number of dimensions of a head that are rotated, the first ones; 0: all
	// (partial_rotary_factor).
	Width int64 `json:"width,omitzero"`
	// Factor is the wanted number of positions divided by the trained number.
	Factor float64 `json:"factor,omitzero"`
	// Trained is the number of trained positions (original_max_position_embeddings; for dynamic,
	// max_position_embeddings).
	Trained int64 `json:"trained,omitzero"`
	// Slow and Fast are rotations over the trained positions. Dimensions with fewer than Slow are
	// stretched by Factor, those with more than Fast are not. They are low_freq_factor and
	// high_freq_factor of llama3, beta_slow and beta_fast of yarn. For yarn 0 means 1 and 32.
	Slow float64 `json:"slow,omitzero"`
	Fast float64 `json:"fast,omitzero"`
	// AttentionFactor multiplies cosines and sines. 0: 1, or for yarn 0.1 ln(Factor) + 1.
	AttentionFactor float64 `json:"attention_factor,omitzero"`
	// Untruncated: for yarn, the limits from Slow and Fast may be fractions of dimensions
	// (truncate: false, gpt-oss).
	Untruncated bool `json:"untruncated,omitzero"`
}

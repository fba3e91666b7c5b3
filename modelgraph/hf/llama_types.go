package hf

import "github.com/devmap-dev/devmap/modelgraph"

// llamaType is a model type that holds the modules of a llama, name for name,
// and differs in what a config leaves unsaid and in how the layers compute.
// Sizes are exact; what the layers keep for a backward pass has the band of a
// family that nobody measured.
type llamaType struct {
	model   string   // its type
	name    string   // of its classes
	classes []string // nil: ForCausalLM and Model
	heads   headDefaults
	tied    tying
	unread  []string
	// adapt changes the decoder's parts where the type is not a llama's.
	adapt func(c *config, a *attention, m *mlp)
	// windows are the layers that slide where layer_types does not say; nil
	// where the type has no windows.
	windows func(c *config) func(layer int64) bool
	window  int64 // the default of sliding_window; 0: none
}

// tying is what an absent tie_word_embeddings means.
type tying int

const (
	untied tying = iota
	tied
	mustSay // the copies of the code differ
)

func init() {
	for _, t := range llamaTypes {
		classes := t.classes
		if classes == nil {
			classes = causalClasses(t.name)
		}
		register(family{
			types: []string{t.model}, class: classes[0], classes: classes, unread: t.unread,
			build: func(b *builder, c *config, class string) { t.build(b, c, class) },
		})
	}
}

// build adds the modules. The five sizes must be given: each type has its own
// defaults.
func (t *llamaType) build(b *builder, c *config, class string) {
	missing := ""
	for _, n := range llamaFields {
		if c.has(n) || c.null(n) {
			c.pos(1, n)
		} else {
			missing = n
		}
	}
	if missing != "" {
		c.fail(missing, "it is absent, and the default of a %s is not known here: write it into the file", t.model)
	}
	tie := t.tied == tied
	if t.tied != mustSay || c.has("tie_word_embeddings") {
		tie = c.bool(tie, "tie_word_embeddings")
	} else if !baseClass(class) {
		c.fail("tie_word_embeddings", "it is absent, and copies of the code of a %s differ in what that means: write true or false into the file", t.model)
	}
	if t.model == "eurobert" && !baseClass(class) && c.bool(false, "mlp_bias") {
		c.fail("mlp_bias", "a head with a bias is not known here")
	}
	t.decoder(c).causal(b, c, class, tie)
}

func (t *llamaType) decoder(c *config) *decoder {
	h, layers := c.pos(1, "hidden_size"), c.count(1, "num_hidden_layers")
	def := t.heads
	def.q = 1
	a := groupedAttention(c, h, def)
	m := gatedMLP(c, h, 1, "silu")
	if t.adapt != nil {
		t.adapt(c, &a, &m)
	}
	d := &decoder{
		hidden: h, vocab: c.pos(1, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return a.part() },
		ffn:       func(int64) part { return m.part() },
		rotary:    rotary(a.headDim),
	}
	if t.windows != nil {
		slides := t.windows(c)
		d.attention = a.windows(layerTypes(c, layers, slides), window(c, t.window))
	}
	if t.model == "baichuan" {
		d.rotary = modelgraph.Layer{} // in every block, and nothing is saved
	}
	return d
}

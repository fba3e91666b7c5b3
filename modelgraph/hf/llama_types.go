package hf

import "github.com/devmap-dev/devmap/modelgraph"

// llamaType is a model type with the modules and names of a llama. It differs in the defaults of a
// config and in how layers compute. Sizes are exact; the memory that layers keep for backward has
// the band of a family without measurements.
type llamaType struct {
	model   string   // its type
	name    string   // of its classes
	classes []string // nil: ForCausalLM and Model
	heads   headDefaults
	tied    tying
	unread  []string
	// adapt changes the decoder's parts if the type is not a llama's.
	adapt func(cfg *config, attn *attention, ffn *feedForward)
	// change edits the whole decoder, for changes that adapt cannot make.
	change func(cfg *config, d *decoder, attn *attention, ffn *feedForward)
	// windows are the layers that slide without layer_types; nil if the type has no windows.
	windows func(cfg *config) func(layer int64) bool
	window  int64 // the default of sliding_window; 0: none
}

// tying is the meaning of an absent tie_word_embeddings.
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
			build: func(modules *builder, cfg *config, class string) { t.build(modules, cfg, class) },
		})
	}
}

// build adds the modules. The five sizes must be given: each type has its own defaults.
func (t *llamaType) build(modules *builder, cfg *config, class string) {
	missing := ""
	for _, name := range llamaFields {
		if cfg.has(name) || cfg.null(name) {
			cfg.pos(1, name)
		} else {
			missing = name
		}
	}
	if missing != "" {
		cfg.fail(missing, "it is absent, and the default of a %s is not known here: write it into the file", t.model)
	}
	tie := t.tied == tied
	if t.tied != mustSay || cfg.has("tie_word_embeddings") {
		tie = cfg.bool(tie, "tie_word_embeddings")
	} else if !baseClass(class) {
		cfg.fail("tie_word_embeddings", "it is absent, and copies of the code of a %s differ in what that means: write true or false into the file", t.model)
	}
	t.decoder(cfg).causal(modules, cfg, class, tie)
}

func (t *llamaType) decoder(cfg *config) *decoder {
	hidden, layers := cfg.pos(1, "hidden_size"), cfg.count(1, "num_hidden_layers")
	def := t.heads
	def.q = 1
	attn := groupedAttention(cfg, hidden, def)
	ffn := gatedMLP(cfg, hidden, 1, "silu")
	if t.adapt != nil {
		t.adapt(cfg, &attn, &ffn)
	}
	d := &decoder{
		hidden: hidden, vocab: cfg.pos(1, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return attn.part() },
		ffn:       func(int64) part { return ffn.part() },
		rotary:    rotary(attn.headDim),
	}
	if t.windows != nil {
		slides := t.windows(cfg)
		d.attention = attn.windows(layerTypes(cfg, layers, slides), readWindow(cfg, t.window))
	}
	if t.change != nil {
		t.change(cfg, d, &attn, &ffn)
	}
	if t.model == "baichuan" {
		d.rotary = modelgraph.Layer{} // in every block, and nothing is saved
	}
	return d
}

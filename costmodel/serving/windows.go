package serving

import (
	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// window is how an architecture places its sliding blocks if the file does not say it
// (llama.cpp 0.5.0: load_swa_pattern in src/models/*.cpp).
type window struct {
	period    int64 // one of so many blocks sees everything
	fullFirst bool  // the first of them; else the last
	tokens    int64 // the default of attention.sliding_window; 0: without the key no block slides
}

var windows = map[string]window{
	"afmoe":        {period: 4},
	"cohere2":      {period: 4},
	"cohere2moe":   {period: 4, fullFirst: true},
	"exaone-moe":   {period: 4, tokens: 128},
	"exaone4":      {period: 4, tokens: 4096},
	"gemma2":       {period: 2, tokens: 4096},
	"gemma3":       {period: 6},
	"gemma3n":      {period: 5},
	"gpt-oss":      {period: 2},
	"laguna":       {period: 4, fullFirst: true},
	"llama4":       {period: 4, tokens: 8192},
	"mellum":       {period: 4},
	"muse-glimmer": {period: 4},
	"olmo2":        {period: 4},
	"plamo3":       {period: 8},
	"smallthinker": {period: 4, fullFirst: true, tokens: 4096},
	"gemma4":       {}, // the file lists them
	"granite_swa":  {},
	"maple":        {},
	"mimo2":        {},
	"spark2_5":     {},
	"step35":       {},
}

// windowKey names the tokens that a sliding block sees, patternKey which blocks slide.
const windowKey, patternKey = "attention.sliding_window", "attention.sliding_window_pattern"

// sliding returns which blocks slide, and the tokens that they see.
func sliding(file *gguf.File, count int64) (slides []bool, tokens int64) {
	slides = make([]bool, count)
	rule, known := windows[file.Architecture]
	tokens = file.Number(windowKey, rule.tokens)
	if !known || tokens == 0 {
		return slides, 0
	}
	if listed := file.Items(patternKey); listed > 0 {
		for i, number := range file.Numbers(patternKey, min(listed, count)) {
			slides[i] = number != 0
		}
		return slides, tokens
	}
	period := file.Number(patternKey, rule.period)
	for i := range slides {
		switch at := int64(i); {
		case period == 0:
			slides[i] = true
		case rule.fullFirst:
			slides[i] = at%period != 0
		default:
			slides[i] = at%period < period-1
		}
	}
	return slides, tokens
}

package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// band is how far a peak may be off where nobody has read the family's
// modelling code: terms that only one family has (Phi-3's copy of the hidden
// states, Gemma's norms in fp32, Mixtral's experts under autocast) are worth 2
// to 50 % of a block's activations each, under a tenth of a peak in the rows
// measured ("ten more families" of make accuracy, worst 3.1 %).
const band = 0.1

// readFamilies are those whose modelling code (transformers 5.17) was read
// tensor by tensor, and that measured rows hold to a fraction of a percent.
var readFamilies = map[string]bool{
	"llama": true, "mistral": true, "qwen2": true, "qwen3": true, "gemma": true, "gemma2": true, "phi3": true,
	"mixtral": true, "qwen3_moe": true, "gpt2": true, "qwen2_5_vl": true, "internvl": true,
}

// warnFamily gives the figures of an unread family their band. A model file
// with operations of its own names no family, and costs what they cost;
// weights alone are exact.
func (e *estimator) warnFamily(t *costmodel.Table) {
	if e.g.Family == "" || readFamilies[e.g.Family] || e.w.Mode == costmodel.Load {
		return
	}
	t.Band = band
	e.warnings = append(e.warnings, fmt.Sprintf(
		"nobody has read the modelling code of %q: its operations are costed as those of families that were read, so every peak may be %.0f%% lower or higher",
		e.g.Family, 100*band))
}

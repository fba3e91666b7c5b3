package forward

import "strings"

// tape is a forward at work: its kernels, and the blocks that ran.
type tape struct {
	kernels
	passed  int     // blocks that were passed
	moments []int64 // the peak of each block that ran
	grouped bool    // a block's weights are there only while it runs
}

// blocks runs those of a list in order, each with its weights; of a stage those
// that are its own.
func (t *tape) blocks(root module, list string, run func(block module)) {
	for i := range root.count(list) {
		t.passed++
		if stage := t.stage; stage != nil && (t.passed <= stage.First || t.passed > stage.End) {
			continue
		}
		block, before := root.at(list, i), t.peak
		t.peak = t.live
		weights := t.blockWeights(block)
		run(block)
		t.drop(weights)
		t.moments = append(t.moments, t.peak)
		t.peak = max(t.peak, before)
	}
}

// blockWeights are a block's weights while it runs, if they are not there
// before.
func (t *tape) blockWeights(mod module) *value {
	if !t.grouped {
		return nil
	}
	total := int64(0)
	for name, shape := range mod.shapes {
		if strings.HasPrefix(name, mod.path+".") {
			total += elements(shape)
		}
	}
	return t.new(total)
}

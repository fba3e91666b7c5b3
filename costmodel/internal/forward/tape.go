package forward

import "strings"

// tape is what a walk leaves behind: bytes alive, the most that were, and the
// work that was done.
type tape struct {
	live, peak int64
	width      int64 // bytes of a value in the component's type
	flops      float64
	gpus       int64   // GPUs that share the tokens
	ring       int64   // GPUs that keys and values go round
	bare       bool    // without what libraries take for a kernel
	stage      *Stage  // the blocks that run; nil: all
	passed     int     // blocks that were passed
	moments    []int64 // the peak of each block that ran
	kept       bool    // keys and values stay with their attention
	streamed   bool    // weights are there only while their module runs
	grouped    bool    // a block's are
	traffic    float64 // bytes of matrices and activations that kernels read and wrote
}

// value is a tensor's storage. It is freed when nothing holds it any more.
type value struct {
	bytes int64
	holds int
}

// quantum is what the allocator rounds sizes to (CUDACachingAllocator.cpp:
// kMinBlockSize).
const quantum = 512

// alloc is a new storage of that many bytes.
func (tape *tape) alloc(bytes int64) *value {
	bytes = (bytes + quantum - 1) / quantum * quantum
	tape.live += bytes
	tape.peak = max(tape.peak, tape.live)
	tape.traffic += float64(bytes)
	return &value{bytes: bytes, holds: 1}
}

// new is a tensor of so many elements in the component's type.
func (tape *tape) new(elements int64) *value { return tape.alloc(elements * tape.width) }

// single is a tensor in single precision.
func (tape *tape) single(elements int64) *value { return tape.alloc(elements * 4) }

// weight is a module's weights while it runs, where they are not there before.
func (tape *tape) weight(mod module, name string) *value {
	if !tape.streamed {
		return nil
	}
	elements := int64(1)
	for _, side := range mod.shapes[mod.in(name).path+".weight"] {
		elements *= side
	}
	return tape.new(elements + mod.out(name))
}

// blocks runs those of a list in order, each with its weights; of a stage those
// that are its own.
func (tape *tape) blocks(root module, list string, run func(block module)) {
	for i := range root.count(list) {
		tape.passed++
		if stage := tape.stage; stage != nil && (tape.passed <= stage.First || tape.passed > stage.End) {
			continue
		}
		block, before := root.at(list, i), tape.peak
		tape.peak = tape.live
		weights := tape.block(block)
		run(block)
		tape.drop(weights)
		tape.moments = append(tape.moments, tape.peak)
		tape.peak = max(tape.peak, before)
	}
}

// first and last report the ends of the model.
func (tape *tape) first() bool { return tape.stage == nil || tape.stage.First == 0 }
func (tape *tape) last() bool  { return tape.stage == nil || tape.stage.End == tape.stage.Blocks }

// joined takes a batch's slices away, when several were copied into one.
func (tape *tape) joined(slices []*value) {
	if len(slices) > 1 {
		total := int64(0)
		for _, slice := range slices {
			total += slice.bytes
		}
		tape.drop(tape.alloc(total))
	}
	tape.drop(slices...)
}

// block is a block's weights while it runs, where they are not there before.
func (tape *tape) block(mod module) *value {
	if !tape.grouped {
		return nil
	}
	total := int64(0)
	for name, shape := range mod.shapes {
		if strings.HasPrefix(name, mod.path+".") {
			elements := int64(1)
			for _, side := range shape {
				elements *= side
			}
			total += elements
		}
	}
	return tape.new(total)
}

// hold is another name for a value: a view, a member of a tuple. Nil, a view of
// what the caller has, needs none.
func (held *value) hold() *value {
	if held != nil {
		held.holds++
	}
	return held
}

// drop takes names away. Nil values have none.
func (tape *tape) drop(values ...*value) {
	for _, dropped := range values {
		if dropped == nil {
			continue
		}
		dropped.holds--
		if dropped.holds == 0 {
			tape.live -= dropped.bytes
		}
		if dropped.holds < 0 {
			panic("forward: a value is dropped twice")
		}
	}
}

// become gives a name to a new value, and takes it from the old one.
func (tape *tape) become(name **value, fresh *value) {
	old := *name
	*name = fresh
	tape.drop(old)
}

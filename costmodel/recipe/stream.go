package recipe

// from is the stream as a step finds it.
func (asm *assembler) from() int {
	if asm.stream < 0 {
		asm.stream = asm.message(classInput)
	}
	return asm.stream
}

// to is a step's output of the stream: the message if it is the last, else a tensor for backward.
// Without a backward every step changes the message in place.
func (asm *assembler) to(last bool) int {
	if last || !asm.train {
		asm.stream = asm.message(classOutput)
	} else {
		asm.stream = asm.saved("stream", asm.dtype, asm.count, asm.width)
	}
	return asm.stream
}

// gradient is the stream's gradient before a step's backward, and after it in a new place.
func (asm *assembler) gradient() int {
	if asm.flow < 0 {
		asm.flow = asm.message(classOutputGradient)
	}
	return asm.flow
}

func (asm *assembler) gone() int {
	asm.flow = asm.message(classInputGradient)
	return asm.flow
}

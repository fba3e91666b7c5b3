package recipe

// from is the stream as a step finds it.
func (writer *writer) from() int {
	if writer.stream < 0 {
		writer.stream = writer.message(classInput)
	}
	return writer.stream
}

// to is where a step puts the stream: the message where it is the last, else a
// tensor that backward reads. Without a backward every step changes the
// message in place.
func (writer *writer) to(last bool) int {
	if last || !writer.train {
		writer.stream = writer.message(classOutput)
	} else {
		writer.stream = writer.kept("stream", writer.dtype, writer.count, writer.width)
	}
	return writer.stream
}

// gradient is the stream's gradient as a step finds it on the way back, and
// gone where it puts it: from then on that is where it lies.
func (writer *writer) gradient() int {
	if writer.flow < 0 {
		writer.flow = writer.message(classOutputGradient)
	}
	return writer.flow
}

func (writer *writer) gone() int {
	writer.flow = writer.message(classInputGradient)
	return writer.flow
}

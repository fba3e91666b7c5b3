package recipe

import "slices"

// splitter cuts a unit's backward in two halves. The second has the kernels that write gradients of
// weights, and those that only these need and that read nothing else: sums over rows, sorts. All
// other kernels are in the first half, in their order, so both halves make the bits of the whole.
//
// A tensor that the first half writes and the second reads is pending between them. A saved tensor
// that the second half reads is late: it lives until then. A recomputed unit copies it instead.
type splitter struct {
	*writer
	kernels []Kernel
	second  []bool         // by kernel
	copied  map[int]int    // a tensor → its pending copy
	before  []Kernel       // copies at the start of the first half
	after   map[int]Kernel // a kernel → the copy of the stream's gradient after it
	needed  map[int]bool   // tensors that the second half reads
}

func (cut *splitter) split() {
	code := &cut.code
	cut.kernels, cut.copied, cut.after, cut.needed = code.Backward.Kernels, map[int]int{}, map[int]Kernel{}, map[int]bool{}
	cut.second = make([]bool, len(cut.kernels))
	code.split = true
	if cut.separable() {
		cut.choose()
		cut.hold()
	}
	code.Backward.Kernels, code.Learn.Kernels = cut.before, nil
	for i := range cut.kernels {
		if cut.second[i] {
			code.Learn.Kernels = append(code.Learn.Kernels, cut.kernels[i])
			continue
		}
		code.Backward.Kernels = append(code.Backward.Kernels, cut.kernels[i])
		if copied, ok := cut.after[i]; ok {
			code.Backward.Kernels = append(code.Backward.Kernels, copied)
		}
	}
	cut.place()
}

// learns reports a kernel that writes a gradient of a weight.
func learns(kernel *Kernel) bool {
	return slices.ContainsFunc(kernel.Operands, func(operand Operand) bool { return operand.Mode == modeGather })
}

// separable reports that no temporary that a gradient of a weight reads is overwritten later. A
// head overwrites its logits part by part. To hold all of them would take more memory than the rest
// of the model, so a head makes its gradients in the first half.
func (cut *splitter) separable() bool {
	for i := range cut.kernels {
		if !learns(&cut.kernels[i]) {
			continue
		}
		for _, operand := range cut.kernels[i].Operands {
			if cut.code.Tensors[operand.Tensor].Class == classTemporary && cut.writerAfter(operand.Tensor, i+1) < len(cut.kernels) {
				return false
			}
		}
	}
	return true
}

// writerAfter is the first kernel from one on that writes a tensor, their number if none does.
func (cut *splitter) writerAfter(tensor, from int) int {
	for i := from; i < len(cut.kernels); i++ {
		if writes(&cut.kernels[i], tensor) {
			return i
		}
	}
	return len(cut.kernels)
}

func writes(kernel *Kernel, tensor int) bool {
	return slices.ContainsFunc(kernel.Operands, func(operand Operand) bool { return operand.Tensor == tensor && operand.Mode != modeRead })
}

// choose finds the kernels of the second half, from last to first.
func (cut *splitter) choose() {
	first := make(map[int]bool) // tensors that the first half reads
	reads := func(kernel *Kernel, into map[int]bool) {
		for _, operand := range kernel.Operands {
			if operand.Mode == modeRead || operand.Mode == modeUpdate {
				into[operand.Tensor] = true
			}
		}
	}
	for i := range cut.kernels {
		if cut.second[i] = learns(&cut.kernels[i]); cut.second[i] {
			reads(&cut.kernels[i], cut.needed)
		}
	}
	for i := len(cut.kernels) - 1; i >= 0; i-- {
		kernel := &cut.kernels[i]
		if cut.second[i] {
			continue
		}
		if cut.moves(i, first) {
			cut.second[i] = true
			reads(kernel, cut.needed)
			continue
		}
		reads(kernel, first)
	}
}

// moves reports a kernel that only the second half needs, and whose inputs that half has anyway.
func (cut *splitter) moves(at int, first map[int]bool) bool {
	for _, operand := range cut.kernels[at].Operands {
		tensor := &cut.code.Tensors[operand.Tensor]
		switch {
		case operand.Mode == modeUpdate, operand.Mode == modeWrite && (tensor.Class != classTemporary || first[operand.Tensor]):
			return false
		case operand.Mode == modeWrite || tensor.Class == classWeight || tensor.Class == classFeed:
		case !cut.needed[operand.Tensor], tensor.Class == classTemporary && cut.writerAfter(operand.Tensor, at+1) < len(cut.kernels):
			return false
		}
	}
	return true
}

// hold gives the second half its own tensors for what the first half overwrites or frees.
func (cut *splitter) hold() {
	for i := range cut.kernels {
		if !cut.second[i] {
			continue
		}
		for j := range cut.kernels[i].Operands {
			operand := &cut.kernels[i].Operands[j]
			switch tensor := &cut.code.Tensors[operand.Tensor]; {
			case tensor.Class == classSaved && cut.recomputes(cut.unit), tensor.Class == classOutputGradient:
				cut.copyFirst(operand)
			case tensor.Class == classInputGradient:
				cut.version(i, operand)
			}
		}
	}
}

// copyFirst copies a tensor before the first half.
func (cut *splitter) copyFirst(operand *Operand) {
	pending, ok := cut.copied[operand.Tensor]
	if !ok {
		kernel := cut.copyOf(operand.Tensor)
		if cut.code.Tensors[operand.Tensor].Class == classSaved {
			cut.code.Copied.Kernels, cut.code.Copied.Traffic = cut.code.Copied.Kernels+1, cut.code.Copied.Traffic+kernel.Bytes
		}
		pending = kernel.Operands[1].Tensor
		cut.before, cut.copied[operand.Tensor] = append(cut.before, kernel), pending
	}
	operand.Tensor = pending
}

// copyOf is a kernel that copies a tensor into one that is pending.
func (cut *splitter) copyOf(tensor int) Kernel {
	pending := cut.pendingLike(tensor)
	like := &cut.code.Tensors[tensor]
	return Kernel{Name: "copy", Dims: []Dim{size("rows", like.Rows), size("columns", like.Columns)}, Operands: []Operand{in("x", tensor), out("y", pending)}, Bytes: float64(2 * like.Rows * like.Columns * bytesOf(like.DType))}
}

// pendingLike adds a pending tensor of the form of another.
func (cut *splitter) pendingLike(tensor int) int {
	like := cut.code.Tensors[tensor]
	return cut.add(Tensor{Name: like.Name + ".pending", Class: classTemporary, Pass: passBackward, DType: like.DType, Rows: like.Rows, Columns: like.Columns, Tie: -1})
}

// version gives a value of the stream's gradient its own tensor, if the unit overwrites it later.
// The kernel that makes the value writes there. The kernels up to the next that writes the stream
// read from there. The value that leaves the unit is copied.
func (cut *splitter) version(at int, operand *Operand) {
	stream := operand.Tensor
	made := at - 1
	for !writes(&cut.kernels[made], stream) { // a step before made it
		made--
	}
	next := cut.writerAfter(stream, at)
	if next == len(cut.kernels) || slices.ContainsFunc(cut.kernels[next].Operands, func(other Operand) bool { return other.Tensor == stream && other.Mode == modeUpdate }) {
		if _, ok := cut.after[made]; !ok {
			cut.after[made] = cut.copyOf(stream)
		}
		operand.Tensor = cut.after[made].Operands[1].Tensor
		return
	}
	pending := cut.pendingLike(stream)
	for i := made; i <= next; i++ {
		for j := range cut.kernels[i].Operands {
			other := &cut.kernels[i].Operands[j]
			if other.Tensor == stream && (other.Mode == modeRead) == (i > made) {
				other.Tensor = pending
			}
		}
	}
}

// place gives every temporary its pass, or a place among the pending ones. Saved tensors that the
// second half reads have places among the late ones.
func (cut *splitter) place() {
	code, regions := &cut.code, &cut.regions
	regions.Saved = 0
	for i := range code.Tensors {
		tensor := &code.Tensors[i]
		later := code.Learn.touches(i)
		to := func(class Class, size *int64) {
			tensor.Class, tensor.Offset = class, *size
			*size += tensor.bytes()
		}
		switch {
		case tensor.Class == classSaved && later:
			to(classLate, &regions.Late)
		case tensor.Class == classSaved:
			to(classSaved, &regions.Saved)
		case tensor.Class == classInput:
			regions.KeepsInput = regions.KeepsInput || later
		case tensor.Class != classTemporary || tensor.Pass != passBackward:
		case later && code.Backward.touches(i):
			tensor.Pass = ""
			to(classPending, &regions.Pending)
		case later:
			tensor.Pass = passWeight
		default:
			tensor.Pass = passInput
		}
	}
}

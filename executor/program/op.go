package program

// opNames are the operations' words in the text, in the order of the constants.
var opNames = [...]string{
	Load: "load", Zero: "zero", Recv: "recv", Send: "send", Free: "free",
	Forward: "forward", Backward: "backward", BackwardInput: "backward-input", BackwardWeight: "backward-weight", Recompute: "recompute", Decode: "decode",
	Step: "step", Fence: "fence", Unload: "unload",
	Store: "store", Fetch: "fetch",
}

// ops finds an operation by its word.
var ops = func() map[string]Op {
	found := make(map[string]Op, len(opNames))
	for op, name := range opNames {
		found[name] = Op(op)
	}
	return found
}()

// String is the operation's word.
func (op Op) String() string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return "unknown"
}

// Runs reports whether an operation runs a routine.
func (op Op) Runs() bool {
	return op >= Forward && op <= Decode
}

// Back reports whether an operation is a backward, or one of its halves.
func (op Op) Back() bool { return op >= Backward && op <= BackwardWeight }

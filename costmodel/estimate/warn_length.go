package estimate

import "fmt"

// warnLength says that sequences are longer than the model was made for:
// rotary positions go on, and what they mean there is another question.
func (e *estimator) warnLength() {
	length, what := e.w.Seq, "--seq"
	if hasTarget(e.g) {
		length, what = e.w.TargetSeq, "--target-seq"
	}
	if length += e.w.NewTokens; e.w.NewTokens > 0 {
		what += " with --new-tokens"
	}
	if e.g.MaxSeq > 0 && length > e.g.MaxSeq {
		e.warnOnce(fmt.Sprintf("%s asks for %d tokens a sequence, and the model was made for up to %d", what, length, e.g.MaxSeq))
	}
}

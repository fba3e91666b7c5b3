package paged

import "fmt"

// DegreeError is a degree of tensor parallelism that the model does not take.
type DegreeError struct {
	Tensor int64
	What   string // what it does not divide
	Size   int64
	// Below and Above are the nearest degrees that the model takes; 0: none.
	Below, Above int64
}

// Error implements error.
func (err *DegreeError) Error() string {
	text := fmt.Sprintf("tensor parallelism over %d GPUs: %d does not divide %s, of which there are %d", err.Tensor, err.Tensor, err.What, err.Size)
	switch {
	case err.Below > 0 && err.Above > 0:
		return fmt.Sprintf("%s; %d and %d do", text, err.Below, err.Above)
	case err.Below > 0:
		return fmt.Sprintf("%s; %d does", text, err.Below)
	}
	return text
}

// mostTensor bounds the search for a degree that the model takes.
const mostTensor = 1024

// Takes reports a degree of tensor parallelism that the model does not take, as a [*DegreeError].
func (model *Model) Takes(tensor int64) error {
	what, size := model.undivided(tensor)
	if what == "" {
		return nil
	}
	err := &DegreeError{Tensor: tensor, What: what, Size: size}
	for degree := tensor - 1; degree > 0 && err.Below == 0; degree-- {
		if what, _ := model.undivided(degree); what == "" {
			err.Below = degree
		}
	}
	for degree := tensor + 1; degree <= mostTensor && err.Above == 0; degree++ {
		if what, _ := model.undivided(degree); what == "" {
			err.Above = degree
		}
	}
	return err
}

// undivided is what a degree does not divide (config/model.py, verify_with_parallel_config;
// vocab_parallel_embedding.py; linear.py, divide).
func (model *Model) undivided(tensor int64) (what string, size int64) {
	switch {
	case model.Heads%tensor != 0:
		return "the heads", model.Heads
	case paddedRows(model.Vocabulary)%tensor != 0:
		return "the rows of the vocabulary", paddedRows(model.Vocabulary)
	case model.KeyHeads > 0 && model.KeyHeads%tensor != 0 && tensor%model.KeyHeads != 0:
		return "the heads of keys", model.KeyHeads
	}
	for i := range model.Layers {
		for _, width := range model.Layers[i].widths {
			if width%tensor != 0 {
				return fmt.Sprintf("a width of layer %d", i), width
			}
		}
	}
	return "", 0
}

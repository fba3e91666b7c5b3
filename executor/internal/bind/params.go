package bind

import (
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Param is a tensor of a parameter that a load, a zero or the optimizer keeps in an arena.
type Param struct {
	Device int
	Buffer int32
	Offset int64 // in the arena
	// Name is the framework's full name (named_parameters). Kind is which of the parameter's
	// tensors this is.
	Name          string
	Kind          Kind
	DType         modelgraph.DType
	Rows, Columns int64
	// Copied: another device owns the parameter; this is a copy.
	Copied bool
}

// Kind is which of a parameter's tensors a [Param] is.
type Kind string

// The kinds.
const (
	Weight   Kind = "weight"
	Master   Kind = "master"
	Mean     Kind = "mean"   // AdamW's first moment
	Square   Kind = "square" // AdamW's second moment
	Gradient Kind = "gradient"
)

// Params returns the tensors of parameters and of the optimizer's state, in the order of the
// buffers and in each by offset.
func (bound *Bound) Params() []Param {
	var params []Param
	for index := range bound.Program.Buffers {
		kind := bound.kinds[index]
		if kind.what != ofWeights && kind.what != ofMaster && kind.what != ofState {
			continue
		}
		buffer := &bound.Program.Buffers[index]
		if kind.of != program.None && bound.units[kind.of].device == buffer.Device {
			for number := range bound.units[kind.of].params {
				if param := &bound.units[kind.of].params[number]; param.owned {
					params = bound.tensors(params, int32(index), int(kind.of), param, false)
				}
			}
			continue
		}
		for number := range bound.ties {
			tie := &bound.ties[number]
			if found, _ := bound.weightOf(buffer.Device, tie, words[kind.what], 0); found == int32(index) {
				params = bound.tensors(params, found, tie.owner, &bound.units[tie.owner].params[tie.param], true)
			}
		}
	}
	return params
}

// words are the last words of buffers' names, by kind.
var words = func() map[what]string {
	out := make(map[what]string, len(unitBuffers))
	for word, what := range unitBuffers {
		out[what] = word
	}
	return out
}()

// tensors adds the tensors of one parameter in a buffer. A copy has nothing else: it begins at the
// first of them.
func (bound *Bound) tensors(params []Param, buffer int32, unit int, param *param, copied bool) []Param {
	code := bound.Recipe.Units[unit].Code
	made := &bound.Program.Buffers[buffer]
	base := int64(-1)
	for _, each := range []struct {
		what   what
		tensor int
		kind   Kind
	}{{ofWeights, param.value, Weight}, {ofMaster, param.master, Master}, {ofState, param.mean, Mean}, {ofState, param.square, Square}} {
		if each.what != bound.kinds[buffer].what || each.tensor < 0 {
			continue
		}
		tensor := &code.Tensors[each.tensor]
		if base < 0 {
			base = made.Offset
			if copied {
				base -= tensor.Offset
			}
		}
		params = append(params, Param{
			Device: int(made.Device), Buffer: buffer, Offset: base + tensor.Offset, Name: param.full, Kind: each.kind,
			DType: tensor.DType, Rows: tensor.Rows, Columns: tensor.Columns, Copied: copied,
		})
	}
	return params
}

// Feed is where a device gets its input: ids, labels or types of the whole batch, as int32.
type Feed struct {
	Device int
	Buffer int32
	Offset int64 // in the arena
	// Name is ids, labels or types; Rows are sequences, Columns their tokens.
	Name          string
	Rows, Columns int64
}

// Feeds returns all feeds of the program.
func (bound *Bound) Feeds() (feeds []Feed) {
	for index := range bound.Program.Buffers {
		kind := bound.kinds[index]
		if kind.what != ofFeed || kind.of == program.None {
			continue
		}
		made := &bound.Program.Buffers[index]
		for _, tensor := range bound.Recipe.Units[kind.of].Code.Tensors {
			if tensor.Class == feedClass {
				feeds = append(feeds, Feed{int(made.Device), int32(index), made.Offset + tensor.Offset, tensor.Name, tensor.Rows, tensor.Columns})
			}
		}
	}
	return feeds
}

package modelgraph

// Graph is a checked layer graph in module order.
type Graph struct {
	Name   string
	Source string // the path it was read from; empty for one built in code
	Family string // model_type, if a framework names one
	Class  string // the framework's class, e.g. LlamaForCausalLM
	// Folder is where the files of Parts, and what else belongs to the model,
	// lie; Config the text of the config.json that the graph was made of. Both
	// are empty if there is none.
	Folder string
	Config []byte
	// DType is the type the weights are kept in if the source says so.
	DType DType
	// Quantized is the method by which the stored weights are quantised, as the
	// config names it (fp8, gptq, …); empty if they are not.
	Quantized string
	// MaxSeq is the longest sequence the model takes; 0: unknown.
	MaxSeq int64
	Layers []Layer
	Units  []Unit
	// Ties are parameters under several full names each; the first one owns the
	// storage.
	Ties [][]string
	// Joined are groups of layers, by name, that one device holds
	// ([Join]).
	Joined [][]string
	// Staged are groups of layers that one stage of a pipeline holds.
	Staged []stagedGroup
	// AutoClass is the class of Transformers that loads the model, if
	// AutoModelForCausalLM does not: an Auto class if the repository brings the
	// code (trust_remote_code).
	AutoClass string
	// Transformers is the release of it that the user named, by which the graph
	// was read; empty: none.
	Transformers string
	// Hollow are modules outside the units that hold no tensor (a dropout): a
	// device map may name them or leave them out.
	Hollow   []string
	Warnings []string
	// Unknown is what running the model would need and its source does not
	// say, or says in a way that is not known here, in the source's words. Only
	// a program is refused because of it: maps and costs do not depend on it.
	Unknown []string
	// Taken is the workload that the layers' declared costs were taken at, if
	// the source says so.
	Taken takenAt

	layerIndex map[string]int
}

// takenAt is a workload as far as declared costs depend on it: sequences of a
// micro-batch, tokens of each, and the precision in the words of --precision.
// Zero fields are not known.
type takenAt struct {
	// Sequences of the micro-batch.
	Batch int64 `json:"batch,omitzero"`
	// Tokens of a sequence.
	Seq int64 `json:"seq,omitzero"`
	// Tokens of a decoder's sequence.
	TargetSeq int64 `json:"target_seq,omitzero"`
	// The precision, as --precision calls it.
	Precision string `json:"precision,omitzero"`
}

// Unit is a wrap unit: consecutive layers that one device holds.
type Unit struct {
	Name string
	// Kind is decoder-layer, encoder-layer, tower, embedding, norm, rotary or head;
	// empty if it is not known.
	Kind string
	// Keys are the module paths (or bare parameter names) that name the unit in
	// a device map: its own, or those of its layers if no single module holds
	// them all.
	Keys       []string
	First, End int   // layers [First, End)
	Inputs     []int // units whose outputs it reads, ascending
	tie        int   // one of the ties or joined groups that bind it, the same for all units bound to it; or -1
	Joined     bool  // a forward joins its result with another unit's
	// Exec are the layers in the order they run.
	Exec []int
}

// ParamCount is the number of parameters, tied ones once.
func (graph *Graph) ParamCount() int64 { return graph.sum((*Layer).paramCount) }

// ParamBytes is the stored size of all parameters, tied ones once.
func (graph *Graph) ParamBytes() int64 { return graph.sum((*Layer).paramBytes) }

func (graph *Graph) sum(f func(*Layer) int64) int64 {
	var total int64
	for i := range graph.Layers {
		total += f(&graph.Layers[i])
	}
	return total
}

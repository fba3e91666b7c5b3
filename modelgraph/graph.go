package modelgraph

// Graph is a checked layer graph in module order.
type Graph struct {
	Name   string
	Source string // the path it was read from; empty for one built in code
	Family string // model_type, if a framework names one
	Class  string // the framework's class, e.g. LlamaForCausalLM
	// Folder has the files of Parts, and everything else that belongs to the model. Config is the
	// text of the config.json of the graph. Both are empty if there is none.
	Folder string
	Config []byte
	// DType is the type of the weights if the source says it.
	DType DType
	// Quantized is the method of quantization of the stored weights, by its name in the config
	// (fp8, gptq, …); empty if they are not quantized.
	Quantized string
	// MaxSeq is the longest sequence that the model takes; 0: unknown.
	MaxSeq int64
	Layers []Layer
	Units  []Unit
	// Ties are parameters with several full names each. The first name owns the storage.
	Ties [][]string
	// Joined are groups of layers, by name, that one device holds
	// ([Join]).
	Joined [][]string
	// Staged are groups of layers that one stage of a pipeline holds.
	Staged []stagedGroup
	// AutoClass is the class of Transformers that loads the model, if AutoModelForCausalLM does
	// not. It is an Auto class if the repository contains the code (trust_remote_code).
	AutoClass string
	// Transformers is the release of Transformers that the user named for reading the graph; empty:
	// none.
	Transformers string
	// Hollow are modules outside the units without tensors (a dropout): a device map may name them
	// or leave them out.
	Hollow   []string
	Warnings []string
	// Unknown lists requirements for running the model that the source does not state, or states in
	// an unknown way, in the source's words. Only programs are refused because of it: maps and
	// costs do not depend on it.
	Unknown []string
	// Taken is the workload for which the layers' declared costs were taken, if the source says it.
	Taken takenAt

	layerIndex map[string]int
}

// takenAt is the part of a workload on which declared costs depend. Zero fields are not known.
type takenAt struct {
	// Sequences of the micro-batch.
	Batch int64 `json:"batch,omitzero"`
	// Tokens of a sequence.
	Seq int64 `json:"seq,omitzero"`
	// Tokens of a decoder's sequence.
	TargetSeq int64 `json:"target_seq,omitzero"`
	// The precision, in the words of --precision.
	Precision string `json:"precision,omitzero"`
}

// Unit is a wrap unit: consecutive layers that one device holds.
type Unit struct {
	Name string
	// Kind is decoder-layer, encoder-layer, tower, embedding, norm, rotary or head;
	// empty if it is not known.
	Kind string
	// Keys are the module paths (or bare parameter names) of the unit in a device map. They are
	// those of its layers if no single module contains them all.
	Keys       []string
	First, End int   // layers [First, End)
	Inputs     []int // units whose outputs it reads, ascending
	tie        int   // a tie or joined group that binds it, equal for all units that are bound together; or -1
	Joined     bool  // a forward joins its result with that of another unit
	// Exec are the layers in the order in which they run.
	Exec []int
}

// ParamCount returns the number of parameters, tied ones once.
func (graph *Graph) ParamCount() int64 { return graph.sum((*Layer).paramCount) }

// ParamBytes returns the stored size of all parameters, tied ones once.
func (graph *Graph) ParamBytes() int64 { return graph.sum((*Layer).paramBytes) }

func (graph *Graph) sum(f func(*Layer) int64) int64 {
	var total int64
	for i := range graph.Layers {
		total += f(&graph.Layers[i])
	}
	return total
}

package safetensors

const (
	// maxHeaderSize is in bytes: tensor.rs, MAX_HEADER_SIZE.
	maxHeaderSize = 100_000_000

	// The format does not limit the following. These limits are above every published checkpoint,
	// and bound time and memory. The most tensors in one are about 140,000: Kimi-K2's 60 layers of
	// 384 experts of 3 matrices, each a weight and its scales. A plan of 250,000 takes 0.9 GB, most
	// of it for layers, units and their keys, not for the header.
	maxTensors   = 250_000   // of one file, of one index and of one folder
	maxMetadata  = 100_000   // entries of __metadata__
	maxRank      = 64        // dimensions; NumPy 2 has the same limit
	maxIndexSize = 256 << 20 // bytes: maxTensors entries of 268 bytes

	maxReaders = 8  // shards read at once
	maxErrors  = 10 // faults reported for one folder
	maxQuoted  = 96 // bytes of a name or value shown in an error
)

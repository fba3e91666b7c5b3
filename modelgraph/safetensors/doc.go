// Package safetensors reads where the tensors of a checkpoint are, without
// reading their data: the header of one file ([ReadFile]) or of every shard of
// a folder ([ReadFolder]); and makes the header of a file that is to be written
// ([Encode]).
//
// A file is accepted when safetensors' own reader accepts it (tensor.rs at
// 24b0b28, read_metadata and Metadata::validate), with these differences, all
// towards refusing:
//
//   - a key given twice is refused, as the format's README asks; serde keeps
//     the last one;
//   - a tensor entry is an object and a dtype a string; serde also takes an
//     array for the first;
//   - a dimension fits int64, and the limits of limits.go hold.
//
// Headers are streamed and checked entry by entry, so memory is bounded by
// limits.go and not by what a hostile file claims. Files are read with pread:
// a file that changes underneath gives an error, not the SIGBUS that a mapping
// would.
//
// Files of a folder are opened by [OpenBeneath], which other readers of the
// same folder (config.json) use too.
package safetensors

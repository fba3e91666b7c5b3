// Package safetensors reads the places of the tensors of a checkpoint, without their data. It reads
// the header of one file ([ReadFile]) or of every shard of a folder ([ReadFolder]). It makes the
// header of a file to be written ([Encode]).
//
// A file is accepted if safetensors' own reader accepts it (tensor.rs at 24b0b28, read_metadata and
// Metadata::validate). These rules are stricter:
//
//   - a key given twice is refused, as the format's README asks; serde keeps the last one;
//   - a tensor entry is an object and a dtype a string; serde also takes an array for an entry;
//   - a dimension fits int64, and the limits of limits.go hold.
//
// Headers are streamed and checked entry by entry, so memory is bounded by limits.go and not by
// what a hostile file claims. Files are read with pread: a file that changes gives an error, not
// the SIGBUS of a mapping.
//
// [OpenBeneath] opens the files of a folder. Other readers of the same folder (config.json) use it
// too.
package safetensors

// Package shard says which rank stores how much of each sharded parameter, and which parameters are
// gathered together.
//
// JAX, as OpenPI uses it, shards whole axes of large arrays only. FSDP2 and HSDP shard every
// parameter's first dimension, ZeRO-3 the flattened parameter. Both pad, so that all ranks store as
// much: the padding is stored and sent, but is no part of the parameter.
package shard

// Package shard says which rank holds how much of each parameter where parameters are sharded, and
// which of them are gathered together.
//
// JAX, as OpenPI uses it, cuts whole axes of large arrays and nothing else. FSDP2 and HSDP cut
// every parameter along its first dimension, ZeRO-3 cuts the flattened parameter. Both pad, so that
// all ranks store as much: the padding is stored and sent, but is no part of the parameter.
package shard

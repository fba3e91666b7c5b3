// Package instance is a placement problem, resolved once for all methods. Patterns become units,
// ties and together-groups become sets of units, and pins become devices of units. Methods that
// keep the model's order get a chain of items, and groups that may be on any device. A method reads
// an [Instance] and returns an [Answer].
//
// An instance is immutable. Functions here derive new ones, for example with the rest of the units,
// other devices, another order or tighter caps.
package instance

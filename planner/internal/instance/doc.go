// Package instance is a problem of placement resolved once, before any method
// is asked. Patterns become units, ties and together-groups become sets of units,
// and pins become devices of units. Methods that keep the order of the model get
// a chain of items, and groups that may be on any device. A method reads an
// [Instance], resolves nothing itself, and returns an [Answer].
//
// An instance is not changed once it is made: where the rest of the units, other
// devices, another order of them or tighter caps are asked for, a function here
// makes another one.
package instance

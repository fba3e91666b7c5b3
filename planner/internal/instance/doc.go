// Package instance is a problem of placement resolved once, before any method
// is asked: patterns are units, ties and together-groups are sets of units,
// pins are devices of units, and for what keeps the order of the model, items
// of a chain and groups beside it. A method reads an [Instance], resolves
// nothing itself, and says what it found as an [Answer].
//
// An instance is not changed once it is made: where the rest of the units, other
// devices, another order of them or tighter caps are asked for, a function here
// makes another one.
package instance

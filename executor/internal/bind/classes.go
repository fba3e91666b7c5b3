package bind

import "github.com/devmap-dev/devmap/costmodel/recipe"

// The classes of tensors, as package recipe lists them.
const (
	weightClass         recipe.Class = "weight"
	gradientClass       recipe.Class = "gradient"
	masterClass         recipe.Class = "master"
	stateClass          recipe.Class = "state"
	cacheClass          recipe.Class = "cache"
	feedClass           recipe.Class = "feed"
	resultClass         recipe.Class = "result"
	savedClass          recipe.Class = "saved"
	lateClass           recipe.Class = "late"
	pendingClass        recipe.Class = "pending"
	inputClass          recipe.Class = "input"
	outputClass         recipe.Class = "output"
	outputGradientClass recipe.Class = "output.gradient"
	inputGradientClass  recipe.Class = "input.gradient"
	tokenClass          recipe.Class = "token"
	normsClass          recipe.Class = "norms"
	totalClass          recipe.Class = "total"
	temporaryClass      recipe.Class = "temporary"
)

// idsName is the name of the result that has a buffer of its own.
const idsName = "ids"

// The modes of operands (package recipe).
const (
	reads   byte = ' '
	writes  byte = '>'
	updates byte = '+'
	gathers byte = '*'
)

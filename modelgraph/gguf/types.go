package gguf

import "github.com/devmap-dev/devmap/modelgraph"

// tensorTypes are the types of tensors by their number (ggml.h, enum ggml_type). Missing numbers
// were removed.
var tensorTypes = map[uint32]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
	10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16",
	34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0", 42: "Q2_0",
}

func typeOf(number uint32) (modelgraph.DType, bool) {
	dtype, err := modelgraph.ParseDType(tensorTypes[number])
	return dtype, err == nil
}

// kind is the type of a value (gguf.h, enum gguf_type).
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
)

// width is the size in bytes of a value, 0 for strings, arrays and unknown kinds.
func (kind kind) width() int64 {
	switch kind {
	case kindU8, kindI8, kindBool:
		return 1
	case kindU16, kindI16:
		return 2
	case kindU32, kindI32, kindF32:
		return 4
	case kindU64, kindI64, kindF64:
		return 8
	case kindString, kindArray:
	}
	return 0
}

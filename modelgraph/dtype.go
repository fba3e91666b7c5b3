package modelgraph

import "fmt"

// DType is the element type of a tensor. Its text form is safetensors' name ("BF16"), or ggml's for
// a type that only GGUF has ("Q4_K"). [ParseDType] also reads PyTorch's names ("bfloat16") and the
// short names of model.json ("bf16"). The zero value is not a type.
type DType uint8

// The element types of safetensors 0.7 (tensor.rs, enum Dtype). Those in which weights are computed
// with are exported.
const (
	invalidDType DType = iota
	boolean
	f4
	f6e2m3
	f6e3m2
	u8
	i8
	f8e5m2
	f8e4m3
	f8e8m0
	f8e5m2fnuz
	f8e4m3fnuz
	i16
	u16
	F16
	BF16
	i32
	u32
	F32
	c64
	f64
	i64
	u64
)

type dtypeInfo struct {
	name    string
	bits    int64
	aliases []string
	// elements of a row lie together in a block of bytes; 0: each has its bits.
	elements, bytes int64
}

// blockedTypes are the types of ggml with blocks (ggml.h, enum ggml_type; ggml-common.h has their
// layouts).
var blockedTypes = []dtypeInfo{
	{name: "Q4_0", elements: 32, bytes: 18},
	{name: "Q4_1", elements: 32, bytes: 20},
	{name: "Q5_0", elements: 32, bytes: 22},
	{name: "Q5_1", elements: 32, bytes: 24},
	{name: "Q8_0", elements: 32, bytes: 34},
	{name: "Q8_1", elements: 32, bytes: 36},
	{name: "Q2_K", elements: 256, bytes: 84},
	{name: "Q3_K", elements: 256, bytes: 110},
	{name: "Q4_K", elements: 256, bytes: 144},
	{name: "Q5_K", elements: 256, bytes: 176},
	{name: "Q6_K", elements: 256, bytes: 210},
	{name: "Q8_K", elements: 256, bytes: 292},
	{name: "IQ2_XXS", elements: 256, bytes: 66},
	{name: "IQ2_XS", elements: 256, bytes: 74},
	{name: "IQ3_XXS", elements: 256, bytes: 98},
	{name: "IQ1_S", elements: 256, bytes: 50},
	{name: "IQ4_NL", elements: 32, bytes: 18},
	{name: "IQ3_S", elements: 256, bytes: 110},
	{name: "IQ2_S", elements: 256, bytes: 82},
	{name: "IQ4_XS", elements: 256, bytes: 136},
	{name: "IQ1_M", elements: 256, bytes: 56},
	{name: "TQ1_0", elements: 256, bytes: 54},
	{name: "TQ2_0", elements: 256, bytes: 66},
	{name: "MXFP4", elements: 32, bytes: 17},
	{name: "NVFP4", elements: 64, bytes: 36},
	{name: "Q1_0", elements: 128, bytes: 18},
	{name: "Q2_0", elements: 64, bytes: 18},
}

var dtypes = append([]dtypeInfo{
	boolean:    {name: "BOOL", bits: 8, aliases: []string{"bool"}},
	f4:         {name: "F4", bits: 4, aliases: []string{"float4_e2m1fn_x2"}},
	f6e2m3:     {name: "F6_E2M3", bits: 6},
	f6e3m2:     {name: "F6_E3M2", bits: 6},
	u8:         {name: "U8", bits: 8, aliases: []string{"uint8"}},
	i8:         {name: "I8", bits: 8, aliases: []string{"int8"}},
	f8e5m2:     {name: "F8_E5M2", bits: 8, aliases: []string{"float8_e5m2"}},
	f8e4m3:     {name: "F8_E4M3", bits: 8, aliases: []string{"float8_e4m3fn", "fp8"}},
	f8e8m0:     {name: "F8_E8M0", bits: 8, aliases: []string{"float8_e8m0fnu"}},
	f8e5m2fnuz: {name: "F8_E5M2FNUZ", bits: 8, aliases: []string{"float8_e5m2fnuz"}},
	f8e4m3fnuz: {name: "F8_E4M3FNUZ", bits: 8, aliases: []string{"float8_e4m3fnuz"}},
	i16:        {name: "I16", bits: 16, aliases: []string{"int16", "short"}},
	u16:        {name: "U16", bits: 16, aliases: []string{"uint16"}},
	F16:        {name: "F16", bits: 16, aliases: []string{"float16", "fp16", "half"}},
	BF16:       {name: "BF16", bits: 16, aliases: []string{"bfloat16"}},
	i32:        {name: "I32", bits: 32, aliases: []string{"int32", "int"}},
	u32:        {name: "U32", bits: 32, aliases: []string{"uint32"}},
	F32:        {name: "F32", bits: 32, aliases: []string{"float32", "fp32", "float"}},
	c64:        {name: "C64", bits: 64, aliases: []string{"complex64"}},
	f64:        {name: "F64", bits: 64, aliases: []string{"float64", "fp64", "double"}},
	i64:        {name: "I64", bits: 64, aliases: []string{"int64", "long"}},
	u64:        {name: "U64", bits: 64, aliases: []string{"uint64"}},
}, blockedTypes...)

var dtypeByName = func() map[string]DType {
	m := make(map[string]DType, 3*len(dtypes))
	for dtype := boolean; int(dtype) < len(dtypes); dtype++ {
		m[dtypes[dtype].name] = dtype
		m[lowerASCII(dtypes[dtype].name)] = dtype
		for _, alias := range dtypes[dtype].aliases {
			m[alias] = dtype
		}
	}
	return m
}()

// ParseDType reads a type name in any of these spellings.
func ParseDType(text string) (DType, error) {
	if dtype, ok := dtypeByName[text]; ok {
		return dtype, nil
	}
	return invalidDType, fmt.Errorf("unknown dtype %q (known: BOOL, U8, I8, F8_E4M3, F16, BF16, F32, … as safetensors names them)", text)
}

// String is the safetensors name.
func (dtype DType) String() string {
	if dtype == invalidDType || int(dtype) >= len(dtypes) {
		return "INVALID"
	}
	return dtypes[dtype].name
}

func (dtype DType) info() dtypeInfo {
	if int(dtype) >= len(dtypes) {
		return dtypeInfo{}
	}
	return dtypes[dtype]
}

// Bits is the width of one element. It is 0 for a type of GGUF whose elements share a block
// (Q4_K).
func (dtype DType) Bits() int64 { return dtype.info().bits }

// Float reports whether a framework casts the type when it loads a model in
// another precision: F16, BF16, F32 and F64. Quantised types stay as stored.
func (dtype DType) Float() bool { return dtype == F16 || dtype == BF16 || dtype == F32 || dtype == f64 }

func lowerASCII(text string) string {
	b := []byte(text)
	for i, char := range b {
		if 'A' <= char && char <= 'Z' {
			b[i] = char + 'a' - 'A'
		}
	}
	return string(b)
}

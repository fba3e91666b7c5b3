package modelgraph

import "fmt"

// DType is the element type of a tensor. Its text form is safetensors' name ("BF16"). [ParseDType]
// also reads PyTorch's names ("bfloat16") and the short names of model.json ("bf16"). The zero
// value is not a type.
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
}

var dtypes = [...]dtypeInfo{
	boolean:    {"BOOL", 8, []string{"bool"}},
	f4:         {"F4", 4, []string{"float4_e2m1fn_x2"}},
	f6e2m3:     {"F6_E2M3", 6, nil},
	f6e3m2:     {"F6_E3M2", 6, nil},
	u8:         {"U8", 8, []string{"uint8"}},
	i8:         {"I8", 8, []string{"int8"}},
	f8e5m2:     {"F8_E5M2", 8, []string{"float8_e5m2"}},
	f8e4m3:     {"F8_E4M3", 8, []string{"float8_e4m3fn", "fp8"}},
	f8e8m0:     {"F8_E8M0", 8, []string{"float8_e8m0fnu"}},
	f8e5m2fnuz: {"F8_E5M2FNUZ", 8, []string{"float8_e5m2fnuz"}},
	f8e4m3fnuz: {"F8_E4M3FNUZ", 8, []string{"float8_e4m3fnuz"}},
	i16:        {"I16", 16, []string{"int16", "short"}},
	u16:        {"U16", 16, []string{"uint16"}},
	F16:        {"F16", 16, []string{"float16", "fp16", "half"}},
	BF16:       {"BF16", 16, []string{"bfloat16"}},
	i32:        {"I32", 32, []string{"int32", "int"}},
	u32:        {"U32", 32, []string{"uint32"}},
	F32:        {"F32", 32, []string{"float32", "fp32", "float"}},
	c64:        {"C64", 64, []string{"complex64"}},
	f64:        {"F64", 64, []string{"float64", "fp64", "double"}},
	i64:        {"I64", 64, []string{"int64", "long"}},
	u64:        {"U64", 64, []string{"uint64"}},
}

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

// ParseDType reads a type name in any of the three spellings.
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

// Bits is the width of one element.
func (dtype DType) Bits() int64 {
	if int(dtype) >= len(dtypes) {
		return 0
	}
	return dtypes[dtype].bits
}

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
